import time
import numpy as np

early = [np.ones(60_000) * i for i in range(50)]
base = [float(e[0]) for e in early]
del early


class Event:
    def __init__(self, n, vals):
        self.n = n
        self.vals = tuple(v + n for v in vals)


log = []
t0 = time.monotonic()
n = 0
while time.monotonic() - t0 < 3.6:
    for _ in range(8):
        log.append(Event(n, base))
        n += 1
    time.sleep(0.002)
print(len(log) > 0)
