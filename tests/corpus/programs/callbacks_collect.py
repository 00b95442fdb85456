import time
from multiprocessing.pool import ThreadPool
import numpy as np

got = []


def work(i):
    x = np.arange(12_000) * 0.5
    time.sleep(0.002)
    return np.convolve(x[:8_000], np.ones(5)) + i


with ThreadPool(2) as pool:
    t0 = time.monotonic()
    i = 0
    while time.monotonic() - t0 < 3.3:
        pool.apply_async(work, (i,), callback=got.append)
        i += 1
        time.sleep(0.006)
    pool.close()
    pool.join()
print(len(got) > 0)
