import sys
import time
from collections import OrderedDict
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class ByteCache(OrderedDict):
    def __init__(self, limit):
        super().__init__()
        self.limit, self.used = limit, 0

    def put(self, k, a):
        if k in self:
            self.used -= self.pop(k).nbytes
        self[k] = a
        self.used += a.nbytes
        while self.used > self.limit:
            _, v = self.popitem(last=False)
            self.used -= v.nbytes


g = np.random.default_rng(13)
c = ByteCache(1_500_000)
miss = 0
for i in range(int(T * 240)):
    k = int(g.pareto(0.7) * 20) % 100_000
    if k not in c:
        miss += 1
        c.put(k, np.zeros(int(g.lognormal(8, 1))))
    c.move_to_end(k)
    time.sleep(0.0037)
print(miss > 0, c.used <= c.limit)
