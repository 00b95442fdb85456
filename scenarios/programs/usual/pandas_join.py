"""pandas: frames, merge, groupby, pivot, strings."""

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
parts = []
for _n in range(12):
    a = pd.DataFrame(
        {
            "k": rng.integers(0, 5000, 120_000),
            "v": rng.standard_normal(120_000),
            "w": rng.integers(0, 9, 120_000),
        }
    )
    b = pd.DataFrame({"k": np.arange(5000), "x": rng.standard_normal(5000)})
    m = a.merge(b, on="k")
    g = m.groupby(["k", "w"]).agg({"v": ["mean", "std"], "x": "sum"})
    p = m.pivot_table(index="k", columns="w", values="v")
    parts.append(g)
    parts.append(p)
whole = pd.concat(parts[::2])
print(whole.shape)
