"""Ragged batches: every worker thread has a workspace that grows, never shrinks."""
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
MAX_LEN = 60_000
local = threading.local()


def workspace(n):
    buf = getattr(local, "buf", None)
    if buf is None or len(buf) < n:
        local.buf = buf = np.empty(n)
    return buf[:n]


def encode(sequence):
    out = workspace(len(sequence))
    np.cumsum(sequence, out=out)
    np.sqrt(out, out=out)
    time.sleep(0.004)
    return float(out[-1])


def batches(stop):
    rng = random.Random(6)
    while time.monotonic() < stop:
        n = min(MAX_LEN, int(300 * rng.paretovariate(0.6)))
        yield np.ones(n)


with ThreadPoolExecutor(4) as pool:
    stop = time.monotonic() + T
    waiting, done, total = [], 0, 0.0
    for seq in batches(stop):
        waiting.append(pool.submit(encode, seq))
        if len(waiting) >= 8:
            total += sum(f.result() for f in waiting)
            done += len(waiting)
            waiting.clear()
print("sequences", done, "total %.1f" % total)
