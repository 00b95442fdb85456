import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
STEPS = int(T * 150)
SPACE = STEPS  # random keys of a space as large as the run: 63% filled at the end
cache = {}
g = np.random.default_rng(2)


def row(k):
    if k not in cache:
        cache[k] = np.sqrt(np.arange(k, k + 500, dtype=np.float64))
    return cache[k]


s = 0.0
for i in range(STEPS):
    s += float(row(int(g.integers(0, SPACE)))[3])
    time.sleep(0.0062)
print(len(cache) <= SPACE, round(s, 3))
