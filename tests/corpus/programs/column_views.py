import time
import numpy as np


class Table:
    def __init__(self, n):
        self.data = np.arange(200_000, dtype=float).reshape(10_000, 20) * n

    def column(self, k):
        return self.data[:, k]


cols = {}


def main():
    end = time.monotonic() + 4.2
    n = 0
    while time.monotonic() < end:
        t = Table(n)
        cols[n] = t.column(n % 20)
        n += 1
        time.sleep(0.04)


main()
print(len(cols) > 0)
