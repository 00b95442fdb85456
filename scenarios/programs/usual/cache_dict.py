"""A cache in a dict with LRU eviction; varied sizes."""

from collections import OrderedDict

import numpy as np

rng = np.random.default_rng(0)
cache: OrderedDict[int, np.ndarray] = OrderedDict()
size = 0


def load(key):
    n = int(rng.lognormal(9.5, 1.6))
    return rng.standard_normal(max(16, min(n, 600_000)))


for _n in range(6000):
    key = int(rng.zipf(1.3)) % 3000
    if key in cache:
        cache.move_to_end(key)
        cache[key].mean()
        continue
    got = load(key)
    cache[key] = got
    size += got.nbytes
    while size > 120_000_000:
        _, old = cache.popitem(last=False)
        size -= old.nbytes
print(len(cache))
