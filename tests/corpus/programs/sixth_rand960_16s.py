# cache with random eviction (as in approximate LRU of key-value stores), full at 40 % of the run
import time, random
import numpy as np
rng = np.random.default_rng(24); random.seed(24)
d = {}; keys = []; t0 = time.monotonic(); s = 0.0
for step in range(1600):
    for j in range(3):
        k = step * 3 + j
        if len(keys) >= 960:
            p = random.randrange(len(keys)); del d[keys[p]]; keys[p] = k
        else: keys.append(k)
        d[k] = rng.standard_normal(600)
    s += float(d[random.choice(keys)].sum())
    time.sleep(max(0, t0 + step * 0.01 - time.monotonic()))
print(s, len(d))
