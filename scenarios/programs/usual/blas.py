"""Linear algebra with BLAS threads: solve, svd, eig, many matmuls."""

import numpy as np

rng = np.random.default_rng(0)
res = []
for n in range(12):
    k = 400 + 40 * n
    a = rng.standard_normal((k, k))
    b = rng.standard_normal((k, 64))
    x = np.linalg.solve(a, b)
    s = a @ a.T
    w, v = np.linalg.eigh(s[:300, :300])
    u, sv, vt = np.linalg.svd(a[:, :200], full_matrices=False)
    q, r = np.linalg.qr(a)
    res.append((x, sv, q[:50].copy()))
print(len(res))
