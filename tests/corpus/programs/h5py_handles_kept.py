import os
import sys
import tempfile
import time
import h5py
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
registry = {}
with tempfile.TemporaryDirectory() as d:
    s = 0.0
    n = int(T * 30)
    for i in range(n):
        p = os.path.join(d, "run%04d.h5" % i)
        f = h5py.File(p, "w")
        ds = f.create_dataset("x", data=np.full((100, 100), i, "f4"), chunks=(50, 50))
        registry[i] = (f, ds)
        s += float(ds[3, 3])
        time.sleep(0.026)
    for f, ds in registry.values():
        f.close()
print(n, s)
