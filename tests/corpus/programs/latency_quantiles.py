"""Estimate latency quantiles of a long request stream with merging digests, one report row per simulated minute."""
import time

import numpy as np


class Digest:
    def __init__(self, size=400):
        self.size = size
        self.means = np.empty(0)
        self.weights = np.empty(0)
        self.pending = []

    def add(self, values):
        self.pending.append(values)
        if sum(v.size for v in self.pending) > 60000:
            self.compress()

    def compress(self):
        if not self.pending:
            return
        fresh = np.concatenate(self.pending)
        self.pending = []
        means = np.concatenate([self.means, fresh])
        weights = np.concatenate([self.weights, np.ones(fresh.size)])
        order = np.argsort(means)
        means, weights = means[order], weights[order]
        q = (np.cumsum(weights) - weights / 2) / weights.sum()
        scale = (np.arcsin(2 * q - 1) / np.pi + 0.5) * self.size
        bins = np.minimum(scale.astype(int), self.size - 1)
        total = np.bincount(bins, weights, self.size)
        mass = np.bincount(bins, weights * means, self.size)
        keep = total > 0
        self.means = mass[keep] / total[keep]
        self.weights = total[keep]

    def quantile(self, q):
        self.compress()
        at = np.searchsorted(np.cumsum(self.weights), q * self.weights.sum())
        return float(self.means[min(at, self.means.size - 1)])


def main():
    rng = np.random.default_rng(31)
    overall = Digest()
    report = []
    for minute in range(60):
        local = Digest(200)
        for _ in range(10):
            values = rng.lognormal(3.0 + 0.3 * np.sin(minute / 9), 0.6, 3000)
            local.add(values)
            overall.add(values)
            time.sleep(0.007)
        report.append((minute, local.quantile(0.5), local.quantile(0.99)))
    worst = max(report, key=lambda r: r[2])
    print("rows", len(report), "worst minute", worst[0], "p99", round(worst[2], 1))
    print("overall p50", round(overall.quantile(0.5), 2), "p99.9", round(overall.quantile(0.999), 2))


if __name__ == "__main__":
    main()
