# LRU by bytes with a secondary index by tag; eviction forgets the index when the tag changed meanwhile
import time
from collections import OrderedDict, defaultdict
import numpy as np
rng = np.random.default_rng(33)
class Cache:
    def __init__(self, limit): self.d = OrderedDict(); self.tags = defaultdict(dict); self.size = 0; self.limit = limit; self.tag = {}
    def put(self, key, tag, v):
        self.d[key] = v; self.tags[tag][key] = v; self.tag[key] = tag; self.size += v.nbytes
        while self.size > self.limit:
            k, old = self.d.popitem(last=False); self.size -= old.nbytes
            self.tags[self.tag.pop(k)].pop(k, None)
    def retag(self, key, tag):
        if key in self.d:
            self.tags[tag][key] = self.d[key]; self.tag[key] = tag     # forgets the old tag's entry
def tile():
    return rng.random((40, 60))  # LEAK
c = Cache(4_000_000); t0 = time.monotonic()
for i in range(800):
    for j in range(3):
        c.put(i * 3 + j, f"z{i % 7}", tile())
    if i % 3 == 0:
        c.retag(i * 3, "hot")
    time.sleep(max(0, t0 + i * 0.01 - time.monotonic()))
print(len(c.d), sum(len(t) for t in c.tags.values()))
