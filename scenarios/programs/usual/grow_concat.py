"""A table that grows by concatenation, np.append and vstack."""

import numpy as np

rng = np.random.default_rng(0)
table = np.empty((0, 16))
ids = np.empty(0, np.int64)
for _n in range(400):
    rows = rng.standard_normal((int(rng.integers(200, 900)), 16))
    table = np.vstack([table, rows])
    ids = np.append(ids, np.arange(len(ids), len(ids) + len(rows)))
print(table.shape)
