import collections
import time
import numpy as np

rng = np.random.default_rng(0)
W = rng.normal(size=60_000) * 0.01
ckpt = collections.deque(maxlen=3)
hist = []
for epoch in range(8):
    for b in range(36):
        x = rng.normal(size=60_000)
        h = np.tanh(x * W)
        W -= 1e-3 * x * (1 - h ** 2)
        time.sleep(0.005)
    outs = []
    for b in range(15):
        outs.append(np.tanh(rng.normal(size=40_000) * W[:40_000]))
        time.sleep(0.004)
    hist.append(float(np.concatenate(outs).mean()))
    ckpt.append(W.copy())
print(len(hist), len(ckpt))
