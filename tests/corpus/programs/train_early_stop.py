import time
import numpy as np


class Run:
    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(2_000, 40))
        self.val = rng.normal(size=(500, 40))
        self.w = rng.normal(size=40)
        self.best = self.w.copy()
        self.curve = []

    def epoch(self, k):
        for s in range(0, 2_000, 100):
            xb = self.x[s:s + 100].copy()
            self.w -= 1e-4 * (xb * np.tanh(xb * self.w)).mean(axis=0)
            time.sleep(0.001)
        loss = float(np.abs(self.val * self.w).mean())
        if not self.curve or loss < min(self.curve):
            self.best = self.w.copy()
        self.curve.append(loss)


scores = []
for seed in range(4):
    run = Run(seed)
    for k in range(35):
        run.epoch(k)
    scores.append(min(run.curve))
print(len(scores))
