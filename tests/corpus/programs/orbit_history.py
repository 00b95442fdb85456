"""Satellites: positions, velocities and residuals of each epoch go into a history (three lines)."""
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
SATS = 30


class Epoch:
    def __init__(self, number, state):
        self.number = number
        self.pos = state[:, :3].copy()
        self.vel = state[:, 3:].copy()
        self.resid = np.linalg.norm(self.pos, axis=1) - 7000.0


class Propagator:
    def __init__(self):
        rng = np.random.default_rng(0)
        self.state = np.hstack([7000 + rng.normal(size=(SATS, 3)), rng.normal(size=(SATS, 3))])
        self.epochs = []

    def step(self, dt):
        pos, vel = self.state[:, :3], self.state[:, 3:]
        r = np.linalg.norm(pos, axis=1, keepdims=True)
        acc = -398600.0 * pos / r ** 3
        self.state = np.hstack([pos + dt * vel, vel + dt * acc])

    def record(self, number):
        self.epochs.append(Epoch(number, self.state))
        return float(self.epochs[-1].resid.max())


prop = Propagator()
stop = time.monotonic() + T
n, worst = 0, 0.0
while time.monotonic() < stop:
    for _ in range(3):
        prop.step(0.1)
    worst = max(worst, prop.record(n))
    n += 1
    time.sleep(0.008)
print("epochs", n, "worst %.2f" % worst)
