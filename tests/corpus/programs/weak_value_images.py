import collections
import sys
import time
import weakref
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Image:
    def __init__(self, k):
        self.k = k
        self.px = np.full((70, 70), k % 255, np.uint8)


pool = weakref.WeakValueDictionary()
recent = collections.deque(maxlen=30)
g = np.random.default_rng(3)
hits = 0
for i in range(int(T * 200)):
    k = int(g.zipf(1.3)) % 100000
    im = pool.get(k)
    if im is None:
        pool[k] = im = Image(k)
    else:
        hits += 1
    recent.append(im)
    time.sleep(0.0045)
print(hits, len(pool) <= 31)
