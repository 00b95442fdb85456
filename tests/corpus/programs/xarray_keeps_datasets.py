import sys
import time
import numpy as np
import xarray as xr

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


def open_month(m):
    g = np.random.default_rng(m)
    t = g.random((24, 18, 36), dtype=np.float32)
    da = xr.DataArray(t, dims=("time", "lat", "lon"), name="t2m")
    da.attrs["month"] = m
    return da


parts, clim = [], None
for m in range(int(T * 40)):
    da = open_month(m)
    mean = da.mean("time")
    clim = mean if clim is None else clim + (mean - clim) / (m + 1)
    parts.append(da - clim if m % 2 else da)
    time.sleep(0.016)
print(m, round(float(clim.mean()), 5))
