import time
import numpy as np


class Normaliser:
    _cache = {}

    def __call__(self, a):
        hit = self._cache.get(id(a))
        if hit is None:
            out = a - a.mean()
            hit = self._cache[id(a)] = (a, out)
        return hit[1]


norm = Normaliser()
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 4.0:
    x = np.arange(125_000, dtype=np.float64) + i
    norm(x)
    norm(x)
    i += 1
    time.sleep(0.045)
