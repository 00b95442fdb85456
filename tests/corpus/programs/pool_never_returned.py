import time
import numpy as np


class Pool:
    def __init__(self):
        self.free, self.all = [], []

    def get(self):
        if self.free:
            return self.free.pop()
        b = np.zeros(20_000)
        self.all.append(b)
        return b

    def put(self, b):
        self.free.append(b)


pool = Pool()


def handle(i):
    b = pool.get()
    b += i
    if i % 10 == 4:
        return "refused"
    pool.put(b)
    return "ok"


t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.0:
    handle(i)
    i += 1
    time.sleep(0.002)
