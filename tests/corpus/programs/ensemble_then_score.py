import time
import numpy as np

rng = np.random.default_rng(8)
X = rng.normal(size=(4000, 30))
y = (X[:, 0] > 0).astype(float)
ensemble, losses = [], []
res = y.copy()
for k in range(40):
    j = k % 30
    pred = np.where(X[:, j] > 0, res.mean(), -res.mean())
    ensemble.append((j, np.sort(X[:, j])))
    res = res - 0.1 * pred
    losses.append(float((res ** 2).mean()))
    time.sleep(0.02)
t0 = time.monotonic()
n = 0
while time.monotonic() - t0 < 2.6:
    x = rng.normal(size=30)
    n += sum(int(np.searchsorted(s, x[j])) for j, s in ensemble)
    time.sleep(0.001)
print(n > 0)
