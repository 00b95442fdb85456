import sys
import time
import numpy as np
import pandas as pd

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
shops = pd.DataFrame({"shop": range(12), "region": [i % 3 for i in range(12)]})
summary = {}
for day in range(int(T * 16)):
    g = np.random.default_rng(day)
    df = pd.DataFrame({"t": pd.date_range("2024-01-01", periods=1500, freq="min"),
                       "shop": g.integers(0, 12, 1500), "sales": g.gamma(2, 10, 1500)})
    df.loc[::97, "sales"] = np.nan
    df = df.dropna().merge(shops, on="shop")
    h = df.set_index("t").groupby("region")["sales"].resample("1h").sum()
    summary[day % 7] = h.unstack(0).mean()
    time.sleep(0.03)
print(len(summary), round(float(summary[0].sum()), 3))
