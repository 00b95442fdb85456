"""Trainer with 20 MB of parameters: the last two checkpoints and the best one are kept."""
import sys
import time
from collections import deque

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
N = 20_000_000 // 8
rng = np.random.default_rng(2)


class Keeper:
    def __init__(self, last=2):
        self.last = deque(maxlen=last)
        self.best = None

    def offer(self, step, loss, params):
        snap = (loss, step, params.copy())
        self.last.append(snap)
        if self.best is None or loss < self.best[0]:
            self.best = snap


params = np.zeros(N)
keeper = Keeper()
losses = []
stop = time.perf_counter() + T
step = 0
while time.perf_counter() < stop:
    idx = rng.integers(0, N, size=2000)
    params[idx] += 0.01
    loss = 1 / (1 + step) ** 0.5 + rng.normal(scale=0.05)
    losses = (losses + [loss])[-50:]
    if step % 4 == 0:
        keeper.offer(step, loss, params)
    step += 1
    time.sleep(0.01)
print("steps", step, "best at", keeper.best[1], "mean loss %.3f" % np.mean(losses))
