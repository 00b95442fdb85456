import os
import sys
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import time
import numpy as np
from scipy import optimize, signal

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


def model(p, t):
    return p[0] * np.exp(-p[1] * t) * np.cos(p[2] * t)


t = np.linspace(0, 6, 400)
mean = np.zeros(3)
n = int(T * 40)
for k in range(n):
    g = np.random.default_rng(k)
    true = np.array([2.0, 0.4, 3.0]) + 0.1 * g.random(3)
    y = model(true, t) + 0.02 * g.standard_normal(t.size)
    y = signal.savgol_filter(y, 9, 3)
    sol = optimize.least_squares(lambda p: model(p, t) - y, x0=[1.8, 0.5, 3.0])
    mean += (sol.x - mean) / (k + 1)
    time.sleep(0.012)
print(np.round(mean, 3))
