"""Climatology from NetCDF files: sums per month and region, all filled after the first files."""
import os
import sys
import tempfile
import time

import netCDF4
import numpy as np
import pandas as pd
import xarray as xr

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
LAT, LON, DAYS = 30, 60, 10


def write_file(path, start):
    rng = np.random.default_rng(abs(hash(start)) % 1000)
    with netCDF4.Dataset(path, "w") as nc:
        for name, size in (("time", DAYS), ("lat", LAT), ("lon", LON)):
            nc.createDimension(name, size)
        t = nc.createVariable("time", "f8", ("time",))
        t.units = "days since 2000-01-01"
        t[:] = np.arange(DAYS) + start
        nc.createVariable("t2m", "f4", ("time", "lat", "lon"))[:] = rng.normal(280, 8, (DAYS, LAT, LON))


def process(path, sums, counts):
    with xr.open_dataset(path, engine="netcdf4") as ds:
        monthly = ds["t2m"].groupby("time.month").sum("time")
        n = ds["time"].groupby("time.month").count()
        for m in monthly["month"].values:
            field = monthly.sel(month=m).values.astype(float)
            key = int(m)
            if key not in sums:
                sums[key] = np.zeros((LAT, LON))
            sums[key] += field
            counts[key] = counts.get(key, 0) + int(n.sel(month=m))


def main():
    sums, counts = {}, {}
    start = time.perf_counter()
    files = 0
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "chunk.nc")
        while (t := time.perf_counter() - start) < T:
            day = int(min(1.0, t / (T / 3)) * 364) if t < T / 3 else (files * 17) % 365
            write_file(path, day)
            process(path, sums, counts)
            files += 1
            time.sleep(0.002)
    means = pd.Series({m: float((sums[m] / counts[m]).mean()) for m in sorted(sums)})
    print("months", len(means) <= 12, "plausible", bool(means.between(270, 290).all()))


main()
