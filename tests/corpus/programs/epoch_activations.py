import time
import numpy as np


def forward(x, w, tape):
    h = np.tanh(x @ w)
    tape.append(h)
    return h


def epoch(w, batches):
    tape = []
    for b in range(batches):
        x = np.full((64, 100), 0.01 * b)
        forward(x, w, tape)
        time.sleep(0.008)
    g = sum(float(h.sum()) for h in tape)
    return g


def main():
    w = np.eye(100)
    for e in range(6):
        g = epoch(w, 60)
        w *= 1.0 - 1e-6 * (g > 0)
    print("done")


if __name__ == "__main__":
    main()
