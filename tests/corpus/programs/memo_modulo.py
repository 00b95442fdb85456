import time
import numpy as np

memo = {}
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 4.2:
    k = (i * 37) % 90
    if k not in memo:
        memo[k] = np.cumsum(np.ones(30_000)) * k
    s = memo[k][-1]
    i += 1
    time.sleep(0.0015)
print(len(memo))
