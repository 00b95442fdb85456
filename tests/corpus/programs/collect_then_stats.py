import math
import time
import numpy as np

rng = np.random.default_rng(3)
samples = []
t0 = time.monotonic()
while time.monotonic() - t0 < 2.0:
    samples.append(rng.normal(size=2_000))
    time.sleep(0.002)
m = np.stack(samples)
samples.clear()
mean, std = float(m.mean()), float(m.std())
del m
z = 0.0
while time.monotonic() - t0 < 4.4:
    for k in range(500):
        z += math.erf((k - mean) / (std + 1.0))
    time.sleep(0.001)
print(z > 0)
