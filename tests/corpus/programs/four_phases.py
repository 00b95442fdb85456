"""load -> train -> evaluate -> export, a plain script as on any cluster."""
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
N = int(T * 60)
rng = np.random.default_rng(3)


def load(shards):
    parts = []
    for _ in range(shards):
        parts.append(rng.normal(size=(500, 40)))
        time.sleep(0.012)
    return parts


def train(parts, steps):
    w = np.zeros(40)
    for i in range(steps):
        x = parts[i % len(parts)]
        y = x[:, 0] * 2 - x[:, 1]
        grad = x.T @ (x @ w - y) / len(y)
        w -= 0.2 * grad
        time.sleep(0.010)
    return w


def evaluate(parts, w):
    scores = []
    for x in parts:
        scores.append(np.abs(x @ w - x[:, 0] * 2 + x[:, 1]))
        time.sleep(0.006)
    return float(np.concatenate(scores).mean())


def export(w, rounds):
    size = 0
    for _ in range(rounds):
        text = ",".join("%.6f" % v for v in np.repeat(w, 20))
        size += len(text)
        time.sleep(0.006)
    return size


data = load(max(4, N // 5))
weights = train(data, int(N * 0.9))
error = evaluate(data, weights)
print("error %.5f" % error, "exported", export(weights, max(3, N // 4)))
