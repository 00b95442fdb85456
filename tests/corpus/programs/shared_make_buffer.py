import time
import numpy as np


def make(n, v):
    return np.full(n, v, dtype=float)


def healthy(k):
    return float(make(2_000 + 100 * k, k).sum())


class Store:
    def __init__(self):
        self.rows = []


store = Store()
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.3:
    for k in range(10):
        healthy(k)
    store.rows.append(None)
    # the only caller that keeps its array
    store.rows[-1] = make(4_000, i)
    i += 1
    time.sleep(0.003)
