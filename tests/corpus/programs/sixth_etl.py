# ETL: read parts for 70 % of the run into a list, concat, then aggregate for the rest
import time
import numpy as np, pandas as pd
rng = np.random.default_rng(9)
def read_part(i):
    n = 6000
    return pd.DataFrame({"k": rng.integers(0, 500, n), "v": rng.standard_normal(n), "w": rng.random(n), "part": np.full(n, i)})
parts = []; t0 = time.monotonic()
for i in range(280):
    df = read_part(i)
    df = df[df.w > 0.1]
    parts.append(df)
    time.sleep(max(0, t0 + i * 0.02 - time.monotonic()))
full = pd.concat(parts, ignore_index=True)
del parts
res = []
for i in range(120):
    sel = full[full.part % 120 == i]
    res.append(sel.groupby("k").v.mean().max())
    time.sleep(max(0, t0 + (280 + i) * 0.02 - time.monotonic()))
print(len(full), np.mean(res))
