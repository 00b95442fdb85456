import sys
import time
import dask
import dask.array as da
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
dask.config.set(scheduler="threads", num_workers=3)
base = np.random.default_rng(0).random((400, 300))
vals = []
for k in range(int(T * 12)):
    x = da.from_array(base, chunks=(100, 100)) * (k + 1)
    y = (x + x.mean(axis=0)).sum(axis=1)
    vals.append(float(y.std().compute()))
    time.sleep(0.03)
print(len(vals), round(vals[-1], 3))
