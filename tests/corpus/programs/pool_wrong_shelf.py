import collections
import time
import numpy as np


class ShelfPool:
    def __init__(self):
        self.shelves = collections.defaultdict(list)

    def get(self, n):
        cap = 1 << (n - 1).bit_length()
        if self.shelves[cap]:
            return self.shelves[cap].pop()[:n]
        return np.empty(cap, dtype=np.float32)[:n]

    def put(self, b):
        self.shelves[b.size].append(b)


def main():
    pool = ShelfPool()
    end = time.monotonic() + 3.3
    i = 0
    while time.monotonic() < end:
        b = pool.get(5_000 + (i * 131) % 3_000)
        b[:] = i
        pool.put(b)
        i += 1
        time.sleep(0.002)
    return pool


the_pool = main()
