"""k-means with broadcasting distances; history of labels kept."""

import numpy as np

rng = np.random.default_rng(0)
X = rng.standard_normal((20_000, 16)).astype(np.float32)
centers = X[:20].copy()
history = []
for _n in range(60):
    d = ((X[:, None, :] - centers[None]) ** 2).sum(-1)
    label = d.argmin(1)
    centers = np.stack([X[label == k].mean(0) if (label == k).any() else X[k] for k in range(20)])
    history.append(label.copy())
print(len(history))
