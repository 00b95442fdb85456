"""Monte Carlo: random walks, cumsum, quantiles kept for each."""

import numpy as np

rng = np.random.default_rng(0)
out = []
paths = []
for n in range(80):
    steps = rng.standard_normal((2000, 252 + n))
    walk = np.exp(np.cumsum(steps * 0.01, axis=1))
    top = np.maximum.accumulate(walk, axis=1)
    dd = (walk / top - 1).min(axis=1)
    out.append(np.quantile(walk, [0.05, 0.5, 0.95], axis=0))
    paths.append(walk[:100].copy())
    out.append(np.sort(dd))
print(len(out))
