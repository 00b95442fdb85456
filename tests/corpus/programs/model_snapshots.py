"""Incremental naive Bayes; a deep copy of the model is kept after every second batch."""
import copy
import sys
import time

import numpy as np
from sklearn.naive_bayes import GaussianNB

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = np.random.default_rng(5)
CENTRES = rng.normal(scale=5, size=(12, 30))


def batch(n):
    which = rng.integers(0, len(CENTRES), size=n)
    return CENTRES[which] + rng.normal(size=(n, 30)), which


class Tracker:
    def __init__(self):
        self.model = GaussianNB()
        self.versions = {}

    def update(self, step, X, y):
        self.model.partial_fit(X, y, classes=np.arange(12))
        if step % 2 == 0:
            self.versions[step] = copy.deepcopy(self.model)

    def drift(self):
        steps = sorted(self.versions)[-2:]
        if len(steps) < 2:
            return 0.0
        a, b = (self.versions[s].theta_ for s in steps)
        return float(np.abs(a - b).max())


tracker = Tracker()
stop = time.perf_counter() + T
step, moved = 0, 0.0
while time.perf_counter() < stop:
    tracker.update(step, *batch(150))
    moved = max(moved, tracker.drift())
    step += 1
    time.sleep(0.004)
print("steps", step, "versions", len(tracker.versions), "moved %.3f" % moved)
