"""MLP with Adam, by hand."""

import numpy as np

rng = np.random.default_rng(0)
sizes = [784, 1024, 512, 10]
W = [
    rng.standard_normal((a, b)).astype(np.float32) * 0.05
    for a, b in zip(sizes, sizes[1:], strict=False)
]
B = [np.zeros(b, np.float32) for b in sizes[1:]]
M = [np.zeros_like(p) for p in W + B]
V = [np.zeros_like(p) for p in W + B]
X = rng.standard_normal((8000, 784)).astype(np.float32)
Y = rng.integers(0, 10, 8000)
losses = []
t = 0
for _epoch in range(2):
    order = rng.permutation(len(X))
    for i in range(0, len(X), 256):
        t += 1
        x, y = X[order[i : i + 256]], Y[order[i : i + 256]]
        acts = [x]
        for w, b in zip(W, B, strict=False):
            z = acts[-1] @ w + b
            acts.append(np.maximum(z, 0) if w is not W[-1] else z)
        z = acts[-1] - acts[-1].max(1, keepdims=True)
        p = np.exp(z)
        p /= p.sum(1, keepdims=True)
        losses.append(-np.log(p[np.arange(len(y)), y] + 1e-9).mean())
        g = p.copy()
        g[np.arange(len(y)), y] -= 1
        g /= len(y)
        gw: list[np.ndarray] = []
        gb: list[np.ndarray] = []
        for n in reversed(range(len(W))):
            gw.insert(0, acts[n].T @ g)
            gb.insert(0, g.sum(0))
            if n:
                g = (g @ W[n].T) * (acts[n] > 0)
        for param, grad, m, v in zip(W + B, gw + gb, M, V, strict=False):
            m *= 0.9
            m += 0.1 * grad
            v *= 0.999
            v += 0.001 * grad**2
            param -= 0.001 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
print(losses[-1])
