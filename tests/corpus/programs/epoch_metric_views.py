"""Training loop; per epoch the worst residuals are kept "for the report"."""
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
N, DIM = 8000, 12


class Report:
    def __init__(self):
        self.epochs = []

    def add(self, epoch, loss, worst):
        self.epochs.append({"epoch": epoch, "loss": float(loss), "worst": worst})

    def summary(self):
        return [float(e["worst"].max()) for e in self.epochs]


def predict(x, w):
    return np.tanh(x @ w)


def train_epoch(x, y, w, lr):
    p = predict(x, w)
    err = p - y
    w -= lr * x.T @ (err * (1 - p**2)) / len(x)
    return float((err**2).mean())


def evaluate(x, y, w):
    res = np.abs(predict(x, w) - y)
    res.sort()
    return res[-3:]


def main():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, DIM))
    y = np.tanh(x @ rng.normal(size=DIM)) + rng.normal(0, 0.1, N)
    w = np.zeros(DIM)
    report = Report()
    start = time.perf_counter()
    epoch = 0
    while time.perf_counter() - start < T:
        loss = train_epoch(x, y, w, 0.1)
        report.add(epoch, loss, evaluate(x, y, w))
        epoch += 1
        time.sleep(0.003)
    print("epochs", epoch > 0, "worst", max(report.summary()) > 0)


main()
