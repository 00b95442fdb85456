import os
import sys
import tempfile
import time
import h5py
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
with tempfile.TemporaryDirectory() as d:
    means = []
    for day in range(int(T * 40)):
        p = os.path.join(d, "day%d.h5" % (day % 5))
        with h5py.File(p, "w") as f:
            f["raw"] = np.random.default_rng(day).random((50, 200))
            f.create_dataset("z", data=np.arange(5000.0), chunks=(500,), compression="gzip")
        with h5py.File(p, "r") as f:
            a = f["raw"][...]
            means.append(float(a.mean() + f["z"][10:20].sum()))
        time.sleep(0.015)
print(len(means), round(sum(means), 3))
