import time
import numpy as np


class Session:
    def __init__(self):
        self.volumes = []

    def scan(self, k):
        v = np.empty((50, 200, 250))
        v[...] = k
        self.volumes.append(v)
        return v.mean()


s = Session()
for k in range(13):
    s.scan(k)
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        np.arange(2_000).sum()
        time.sleep(0.002)
print(len(s.volumes))
