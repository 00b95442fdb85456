"""Counts of genes in cells: filtered, scaled, a randomised SVD, clusters by neighbours."""

import numpy as np

rng = np.random.default_rng(64)
cells, genes = 2_400, 1_800
counts = rng.poisson(rng.gamma(0.4, 1.2, genes), (cells, genes)).astype(np.uint16)
kept = np.flatnonzero((counts > 0).sum(0) > 40)
counts = counts[:, kept]
scaled = np.log1p(counts / counts.sum(1, keepdims=True) * 10_000).astype(np.float32)
spread = scaled.var(0)
scaled = scaled[:, spread > np.quantile(spread, 0.3)]
scaled -= scaled.mean(0)
sketch = scaled @ rng.standard_normal((scaled.shape[1], 40)).astype(np.float32)
for _step in range(3):
    basis, _ = np.linalg.qr(sketch)
    sketch = scaled @ (scaled.T @ basis)
basis, _ = np.linalg.qr(sketch)
left, values, _ = np.linalg.svd(basis.T @ scaled, full_matrices=False)
reduced = basis @ left * values
labels = np.arange(cells)
found = []
for start in range(0, cells, 300):
    block = reduced[start : start + 300]
    distance = (block**2).sum(1)[:, None] - 2 * block @ reduced.T + (reduced**2).sum(1)
    found.append(np.argsort(distance, axis=1)[:, 1:13].astype(np.int32))
neighbours = np.concatenate(found)
for _round in range(8):
    labels = np.array([np.bincount(labels[row]).argmax() for row in neighbours])
print(len(np.unique(labels)), reduced.shape)
