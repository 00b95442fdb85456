import sys
import time
import random
import polars as pl

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
minutes = []
r = random.Random(3)
for m in range(int(T * 70)):
    n = 4000
    df = pl.select(
        ts=pl.int_range(m * n, (m + 1) * n, dtype=pl.Int64),
        v=pl.int_range(0, n, dtype=pl.Int64) * r.random(),
    ).with_columns((pl.col("v") * 2).sqrt().alias("w"))
    minutes.append(df)
    tail = df.filter(pl.col("v") > 10)["w"].mean()
    time.sleep(0.011)
print(len(minutes), round(tail, 4))
