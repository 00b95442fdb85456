import time
import numpy as np

cache, extras = {}, []


def get(k):
    if k not in cache:
        cache[k] = np.arange(20_000) + k
    return cache[k]


t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 4.5:
    v = get(i % 300)
    if i > 400:
        extras.append(v[:2_500] * 1.5)
    i += 1
    time.sleep(0.0035)
print(len(extras) > 0)
