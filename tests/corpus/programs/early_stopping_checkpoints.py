"""Train with restarts; keep the best weights and the last three checkpoints (pickled)."""
import copy
import pickle
import sys
import time
from collections import deque

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
DIM, HID = 100, 200


def init(rng):
    return {"w1": rng.normal(0, 0.1, (DIM, HID)), "b1": np.zeros(HID), "w2": rng.normal(0, 0.1, HID)}


def loss_and_grads(p, x, y):
    h = np.tanh(x @ p["w1"] + p["b1"])
    err = h @ p["w2"] - y
    dh = np.outer(err, p["w2"]) * (1 - h**2)
    n = len(x)
    grads = {"w1": x.T @ dh / n, "b1": dh.mean(0), "w2": h.T @ err / n}
    return float((err**2).mean()), grads


class Checkpointer:
    def __init__(self, keep=3):
        self.blobs = deque(maxlen=keep)
        self.best, self.best_loss = None, np.inf

    def update(self, params, val):
        self.blobs.append(pickle.dumps(params, protocol=5))
        if val < self.best_loss:
            self.best_loss, self.best = val, copy.deepcopy(params)
            return True
        return False


def main():
    rng = np.random.default_rng(6)
    xv = rng.normal(size=(100, DIM))
    yv = np.sin(xv[:, 0])
    ckpt, params = Checkpointer(), init(rng)
    metrics, patience, restarts = [], 0, 0
    end = time.perf_counter() + T
    while time.perf_counter() < end:
        x = rng.normal(size=(64, DIM))
        loss, grads = loss_and_grads(params, x, np.sin(x[:, 0]))
        for k in params:
            params[k] = params[k] - 0.05 * grads[k]
        val = loss_and_grads(params, xv, yv)[0]
        metrics.append((loss, val))
        patience = 0 if ckpt.update(params, val) else patience + 1
        if patience > 40:
            params, patience, restarts = init(rng), 0, restarts + 1
        time.sleep(0.002)
    print("epochs", len(metrics) > 0, "best", ckpt.best_loss < 10, len(ckpt.blobs) <= 3)


main()
