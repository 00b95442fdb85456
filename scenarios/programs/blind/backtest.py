"""Prices of many papers: rolling means, ranks by day, positions, a table of results by setting."""

import numpy as np

rng = np.random.default_rng(90)
days, papers = 900, 400
prices = np.exp(np.cumsum(rng.normal(0, 0.01, (days, papers)), axis=0))
returns = np.diff(prices, axis=0) / prices[:-1]
report = {}
for window in (5, 10, 20, 40, 60):
    sums = np.cumsum(np.insert(prices, 0, 0, axis=0), axis=0)
    means = (sums[window:] - sums[:-window]) / window
    signal = prices[window - 1 :] / means - 1
    ranks = signal.argsort(axis=1).argsort(axis=1) / papers
    for share in (0.05, 0.1, 0.2):
        weights = np.where(ranks < share, 1.0, 0.0) - np.where(ranks > 1 - share, 1.0, 0.0)
        weights /= np.abs(weights).sum(1, keepdims=True)
        gains = (weights[:-1] * returns[window - 1 :]).sum(1)
        worth = np.cumprod(1 + gains)
        fall = (np.maximum.accumulate(worth) - worth).max()
        report[window, share] = worth, fall, np.corrcoef(signal[::10].T)[:20, :20].copy()
print(len(report), round(float(max(worth[-1] for worth, _, _ in report.values())), 3))
