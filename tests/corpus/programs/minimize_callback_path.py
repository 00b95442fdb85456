"""Calibrate a model for each new curve; the optimiser's path is recorded through a callback."""
import sys
import time

import numpy as np
from scipy.optimize import minimize

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
N = 300


class PathRecorder:
    """Remembers what the optimiser did, for a plot of the convergence."""

    points = []

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __call__(self, intermediate_result):
        p = intermediate_result.x
        self.points.append((intermediate_result.fun, residual(p, self.x, self.y)))

    def best(self):
        return min(f for f, _ in self.points)


def curve(p, x):
    return p[0] * np.exp(-p[1] * x) + p[2] * np.cos(x)


def residual(p, x, y):
    return curve(p, x) - y


def objective(p, x, y):
    return float((residual(p, x, y) ** 2).sum())


def main():
    rng = np.random.default_rng(3)
    x = np.linspace(0, 5, N)
    fits = []
    start = time.perf_counter()
    while time.perf_counter() - start < T:
        truth = rng.uniform(0.5, 2, size=3)
        y = curve(truth, x) + rng.normal(0, 0.01, N)
        rec = PathRecorder(x, y)
        res = minimize(objective, np.ones(3), args=(x, y), method="BFGS", callback=rec)
        fits.append(float(np.abs(res.x - truth).max()))
        time.sleep(0.002)
    print("fits", len(fits) > 0, "best", rec.best() < 1)


main()
