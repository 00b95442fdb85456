import os
import sys
import tempfile
import time
import h5py
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
cache = {}


def window(f, start, n=2000):
    if start not in cache:
        cache[start] = f["wave"][start % 90000:start % 90000 + n]
    return cache[start]


with tempfile.TemporaryDirectory() as d:
    p = os.path.join(d, "wave.h5")
    with h5py.File(p, "w") as f:
        f.create_dataset("wave", data=np.sin(np.arange(100_000) / 50).astype("f4"), chunks=(4000,))
    with h5py.File(p, "r") as f:
        e = 0.0
        for k in range(int(T * 120)):
            w = window(f, k * 700)
            e += float((w.astype("f8") ** 2).mean())
            time.sleep(0.0068)
print(round(e, 5), len(cache))
