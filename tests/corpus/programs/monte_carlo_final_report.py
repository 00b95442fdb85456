"""Option prices by Monte-Carlo: running moments, and one sample of paths for the report."""
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
STEPS = 64


class Welford:
    def __init__(self):
        self.n, self.mean, self.m2 = 0, 0.0, 0.0

    def add(self, values):
        for part in np.array_split(values, 4):
            n = part.size
            delta = part.mean() - self.mean
            tot = self.n + n
            self.mean += delta * n / tot
            self.m2 += part.var() * n + delta * delta * self.n * n / tot
            self.n = tot


def simulate(rng, n, s0=100.0, mu=0.02, sigma=0.3):
    dt = 1.0 / STEPS
    shocks = rng.normal((mu - sigma**2 / 2) * dt, sigma * dt**0.5, size=(n, STEPS))
    return s0 * np.exp(np.cumsum(shocks, axis=1))


def payoff(paths, strike=105.0):
    return np.maximum(paths.mean(axis=1) - strike, 0.0)


def main():
    rng = np.random.default_rng(11)
    stats = Welford()
    start = time.perf_counter()
    while time.perf_counter() - start < T * 0.92:
        stats.add(payoff(simulate(rng, 400)))
        time.sleep(0.002)

    sample = []
    while time.perf_counter() - start < T:
        sample.append(simulate(rng, 200))
        time.sleep(0.002)
    fan = np.concatenate(sample)
    bands = np.percentile(fan, [5, 25, 50, 75, 95], axis=0)
    print("price ok:", 1 < stats.mean < 20, "bands", bands.shape)


main()
