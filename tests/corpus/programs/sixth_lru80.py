# tile cache: LRU by bytes, limit reached only at 96 % of the run
import time
from collections import OrderedDict
import numpy as np
rng = np.random.default_rng(12)
class ByteLRU:
    def __init__(self, limit):
        self.d = OrderedDict(); self.size = 0; self.limit = limit; self.hits = 0
    def get(self, key, make):
        if key in self.d:
            self.d.move_to_end(key); self.hits += 1
            return self.d[key]
        v = make(key); self.d[key] = v; self.size += v.nbytes
        while self.size > self.limit:
            _, old = self.d.popitem(last=False); self.size -= old.nbytes
        return v
def render(key):
    n = 40 + key % 90
    y, x = np.mgrid[0:n, 0:n]
    return np.sin(x * key * 0.01) + np.cos(y)
cache = ByteLRU(80_000_000); t0 = time.monotonic(); s = 0.0; full = None
for i in range(800):
    for _ in range(3):
        k = int(abs(rng.normal(0, 900)))
        s += float(cache.get(k, render)[0, 0])
    if full is None and cache.size > 79_000_000: full = i
    time.sleep(max(0, t0 + i * 0.01 - time.monotonic()))
print(cache.hits, len(cache.d), cache.size, full)
