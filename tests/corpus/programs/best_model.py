import time
import numpy as np


class Trainer:
    def __init__(self):
        self.w = np.zeros(200_000)
        self.best = None
        self.best_loss = float("inf")

    def step(self, i):
        g = np.cos(self.w + i)
        self.w = self.w - 0.01 * g
        loss = 1000.0 / (i + 1)
        if i % 7 == 0 and loss < self.best_loss:
            self.best_loss = loss
            self.best = self.w.copy()


tr = Trainer()
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.2:
    tr.step(i)
    i += 1
    time.sleep(0.002)
print(tr.best_loss < 1000)
