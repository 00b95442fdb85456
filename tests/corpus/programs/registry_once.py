import time
import numpy as np

REGISTRY = {}


def register(i):
    REGISTRY[f"item{i}"] = np.arange(4_000) * i


for i in range(500):
    register(i)
    time.sleep(0.0008)
t0 = time.monotonic()
s = 0
while time.monotonic() - t0 < 3.2:
    s += int(REGISTRY[f"item{s % 500}"][7]) + 1
    np.ones(300).sum()
    time.sleep(0.001)
print(len(REGISTRY))
