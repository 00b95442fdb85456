import time
import numpy as np


class Tracker:
    def __init__(self, n):
        self.slots = [None] * n
        self.by_id = {}

    def track(self, i):
        a = np.arange(600.0) + i
        self.slots[i % len(self.slots)] = a
        if i % 8 == 3:
            self.by_id[i] = a


tr = Tracker(3_000)
for i in range(3_000):
    tr.track(i)
t0 = time.monotonic()
while time.monotonic() - t0 < 3.6:
    for _ in range(6):
        i += 1
        tr.track(i)
    time.sleep(0.002)
