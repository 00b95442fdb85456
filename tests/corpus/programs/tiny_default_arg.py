"""A helper with a mutable default argument keeps every 13-number gradient, 1,000 a second."""
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = np.random.default_rng(4)
X = rng.normal(size=(400, 13))
Y = X @ np.arange(13.0) + rng.normal(size=400)


def gradient(w, row):
    err = X[row] @ w - Y[row]
    return X[row] * err


def smooth(g, history=[]):
    history.append(g)
    recent = history[-8:]
    return sum(recent) / len(recent)


def main():
    w = np.zeros(13)
    stop = time.perf_counter() + T
    n = 0
    while time.perf_counter() < stop:
        for _ in range(4):
            g = gradient(w, n % 400)
            w = w - 0.01 * smooth(g)
            n += 1
        time.sleep(0.003)
    print("updates", n, "w", np.round(w, 2).tolist())


main()
