import sys
import time
import dask
import dask.array as da
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
dask.config.set(scheduler="threads", num_workers=2)
steps = {}


def rolling(k):
    x = da.ones((60, 80), chunks=(30, 40)) * k
    y = (x + x.T.sum()) / 3
    return y.compute()


for k in range(int(T * 32)):
    steps["step-%d" % k] = rolling(k)
    time.sleep(0.018)
print(len(steps), float(steps["step-3"][0, 0]))
