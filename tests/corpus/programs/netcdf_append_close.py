import os
import sys
import tempfile
import time
import netCDF4
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
acc = 0.0
with tempfile.TemporaryDirectory() as d:
    for i in range(int(T * 18)):
        p = os.path.join(d, "out%d.nc" % (i % 3))
        ds = netCDF4.Dataset(p, "w")
        ds.createDimension("time", None)
        ds.createDimension("x", 64)
        v = ds.createVariable("u", "f8", ("time", "x"))
        for t in range(6):
            v[t] = np.sin(np.arange(64) * 0.1 * t + i)
        ds.close()
        with netCDF4.Dataset(p) as r:
            acc += float(np.asarray(r["u"][:]).std())
        time.sleep(0.03)
print(round(acc, 5))
