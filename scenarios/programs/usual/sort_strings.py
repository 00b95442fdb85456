"""String arrays: join, unique, sort, argsort."""

import numpy as np

rng = np.random.default_rng(0)
words = np.array([f"w{i:06d}" for i in range(50_000)])
index = []
for _n in range(30):
    pick = words[rng.integers(0, len(words), 60_000)]
    up = np.strings.upper(pick) if hasattr(np, "strings") else np.char.upper(pick)
    tagged = np.char.add(up, "_x")
    u, inv, counts = np.unique(tagged, return_inverse=True, return_counts=True)
    order = np.argsort(counts, kind="stable")
    index.append(u[order[-2000:]])
    joined = np.concatenate(index)
    joined.sort()
print(joined.nbytes)
