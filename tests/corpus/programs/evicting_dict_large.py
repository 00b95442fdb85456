import time
from collections import OrderedDict
import numpy as np


class BlockCache:
    def __init__(self, limit):
        self.limit = limit
        self.d = OrderedDict()

    def get(self, key):
        if key in self.d:
            self.d.move_to_end(key)
            return self.d[key]
        v = np.ones(625_000) * key
        self.d[key] = v
        while len(self.d) > self.limit:
            self.d.popitem(last=False)
        return v


cache = BlockCache(20)
k = 0
t0 = time.monotonic()
while time.monotonic() - t0 < 4.5:
    cache.get(k)
    cache.get(max(0, k - 3))
    k += 1
    time.sleep(0.012)
print(len(cache.d))
