import time
import numpy as np


class Pool:
    def __init__(self, n):
        self.free = [np.empty(250_000) for _ in range(n)]

    def acquire(self):
        return self.free.pop()

    def release(self, b):
        self.free.append(b)


pool = Pool(8)
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 2.6:
    a, b = pool.acquire(), pool.acquire()
    np.multiply(a, 0.0, out=b)
    pool.release(a)
    pool.release(b)
    i += 1
    time.sleep(0.003)
print(len(pool.free))
