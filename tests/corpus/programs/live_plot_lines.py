"""matplotlib live plot: each refresh adds a new curve to the same axes, old ones are not removed."""
import sys
import time

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = np.random.default_rng(8)
fig, ax = plt.subplots(figsize=(3, 2), dpi=60)


def acquire(n):
    x = np.linspace(0.0, 1.0, n)
    y = np.sin(12 * x) + rng.normal(scale=0.1, size=n)
    return x, y


def refresh(k):
    x, y = acquire(3000)
    ax.plot(x, y, lw=0.5, color="C%d" % (k % 10))
    ax.set_title("shot %d" % k)


started = time.monotonic()
k = 0
while time.monotonic() - started < T:
    refresh(k)
    k += 1
    time.sleep(0.03)
ax.set_title("%d shots" % k)
print("shots", k, "curves", len(ax.lines))
