import sys
import time
import numpy as np
import polars as pl

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
dim = pl.DataFrame({"k": list(range(20)), "name": ["g%d" % i for i in range(20)]})
last = None
for i in range(int(T * 40)):
    g = np.random.default_rng(i)
    df = pl.DataFrame({"k": g.integers(0, 20, 5000), "v": g.random(5000)})
    last = df.group_by("k").agg(pl.col("v").mean()).join(dim, on="k").sort("k")
    time.sleep(0.016)
print(last.height, round(last["v"][0], 5))
