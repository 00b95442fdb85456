import itertools
import time
import numpy as np


def source():
    i = 0
    while True:
        yield np.arange(15_000) + i
        i += 1


a, b = itertools.tee(source())
for _ in range(5):
    next(a)
t0 = time.monotonic()
s = 0
while time.monotonic() - t0 < 2.6:
    s += int(next(a)[0] - next(b)[0])
    time.sleep(0.002)
print(s > 0)
