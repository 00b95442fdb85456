"""Sliding window statistics with a ring of chunks."""

from collections import deque

import numpy as np

rng = np.random.default_rng(0)
window: deque[np.ndarray] = deque(maxlen=50)
stats = []
for n in range(1500):
    chunk = rng.standard_normal(int(rng.integers(5_000, 60_000)))
    window.append(chunk)
    if n % 5 == 0:
        whole = np.concatenate(window)
        c = np.cumsum(whole)
        mean = (c[500:] - c[:-500]) / 500
        stats.append((mean.max(), mean.min(), np.histogram(whole, 100)[0]))
print(len(stats))
