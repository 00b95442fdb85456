import time
from multiprocessing.pool import ThreadPool
import numpy as np


def work(k):
    x = np.arange(20_000) * k
    time.sleep(0.003)
    return np.sort(x)[::-1].copy()


def main():
    t0 = time.monotonic()
    best = 0
    with ThreadPool(4) as pool:
        while time.monotonic() - t0 < 3.4:
            res = pool.map(work, range(24))
            best = max(best, int(res[-1][0]))
    print(best > 0)


main()
