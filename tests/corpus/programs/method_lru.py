import functools
import time
import numpy as np


class Doc:
    def __init__(self, n):
        self.n = n
        self.table = np.zeros((100, 64), dtype=np.float32)

    @functools.lru_cache(maxsize=None)
    def score(self, q):
        self.table[q % 100] += 1
        return float(self.table.sum())


def serve(seconds):
    end = time.monotonic() + seconds
    n = 0
    while time.monotonic() < end:
        d = Doc(n)
        d.score(n % 7)
        d.score(n % 7)
        n += 1
        time.sleep(0.003)
    return n


print(serve(3.1) > 0)
