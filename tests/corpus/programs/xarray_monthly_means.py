import sys
import time
import numpy as np
import xarray as xr

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
acc = []
n = int(T * 20)
for m in range(n):
    g = np.random.default_rng(m)
    ds = xr.Dataset(
        {"t2m": (("time", "lat", "lon"), g.random((28 + m % 4, 20, 30))),
         "pr": (("time", "lat", "lon"), g.random((28 + m % 4, 20, 30)))},
        coords={"time": np.arange(28 + m % 4), "lat": np.linspace(-90, 90, 20), "lon": np.linspace(0, 350, 30)})
    w = ds.weighted(np.cos(np.deg2rad(ds.lat)))
    acc.append(float(w.mean(("lat", "lon")).t2m.mean()))
    ds.close()
    time.sleep(0.03)
print(n, round(float(np.mean(acc)), 6))
