import multiprocessing as mp
import time
import numpy as np


def job(i):
    a = np.arange(50_000, dtype=float) + i
    time.sleep(0.004)
    return a * 2


if __name__ == "__main__":
    t0 = time.monotonic()
    s = 0.0
    with mp.get_context("fork").Pool(2) as p:
        while time.monotonic() - t0 < 2.5:
            for r in p.imap(job, range(20)):
                s += r[0]
    print(s > 0)
