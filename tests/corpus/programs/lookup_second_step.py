import time
import numpy as np


class Service:
    def __init__(self):
        self.tables = {k: np.zeros(30_000) + k for k in range(60)}

    def load_more(self):
        for k in range(60, 120):
            self.tables[k] = np.ones(30_000) * k

    def query(self, k):
        return float((self.tables[k % len(self.tables)] * 2)[0])


sv = Service()
t0 = time.monotonic()
loaded = False
i = 0
s = 0.0
while (el := time.monotonic() - t0) < 4.0:
    if not loaded and el > 1.0:
        sv.load_more()
        loaded = True
    s += sv.query(i)
    i += 1
    time.sleep(0.002)
print(s > 0)
