import sys
import time
from collections import OrderedDict
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class ByteCache:
    def __init__(self, limit):
        self.limit, self.used, self.d = limit, 0, OrderedDict()

    def put(self, k, a):
        self.d[k] = a
        self.used += a.nbytes
        while self.used > self.limit and len(self.d) > 1:
            old, v = self.d.popitem(last=False)
            self.used -= v.nbytes * 3

    def get(self, k):
        return self.d.get(k)


def load_chunk(k):
    return np.arange(k, k + 600 + k % 5 * 40, dtype=np.float32)


c, s = ByteCache(60_000), 0.0
for k in range(int(T * 260)):
    a = c.get(k // 2)
    if a is None:
        a = load_chunk(k)
        c.put(k, a)
    s += float(a[0])
    time.sleep(0.0033)
print(round(s, 1))
