import time
import numpy as np

rng = np.random.default_rng(0)
models = {}
for fold in range(5):
    w = np.zeros((100, 100))
    for step in range(40):
        x = rng.normal(size=(50, 100))
        w -= 0.001 * x.T @ (x @ w - 1.0)
        time.sleep(0.003)
    models[fold] = w.copy()

t0 = time.monotonic()
votes = 0
while time.monotonic() - t0 < 3.0:
    x = rng.normal(size=(200, 100))
    p = np.mean([x @ m for m in models.values()], axis=0)
    votes += int((p > 0).sum())
    time.sleep(0.002)
print(votes > 0)
