# weakref.finalize(self, self.close): the bound method keeps the object alive for ever; pool of connections recycled
import time, weakref
import numpy as np
rng = np.random.default_rng(23)
class Conn:
    def __init__(self, n):
        self.n = n
        self.recv = np.zeros(16384, dtype=np.uint8); self.recv[:] = n % 251  # LEAK
        self._fin = weakref.finalize(self, self.close)
        self._fin.atexit = False
    def close(self): self.recv = None
    def ask(self, q):
        x = rng.standard_normal(20000)
        return float(x.sum()) + int(self.recv[q % 16384])
pool = []; t0 = time.monotonic(); s = 0.0
for i in range(800):
    if i % 2 == 0:
        pool.append(Conn(i))
        if len(pool) > 8: pool.pop(0)
    s += pool[-1].ask(i)
    time.sleep(max(0, t0 + i * 0.01 - time.monotonic()))
print(s, len(pool))
