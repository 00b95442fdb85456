"""A monitor thread takes snapshots of the parameters while the main thread trains."""
import sys
import threading
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
DIM = 96


class Monitor(threading.Thread):
    def __init__(self, params, period):
        super().__init__(daemon=True)
        self.params = params
        self.period = period
        self.stop_event = threading.Event()
        self.trace = []
        self.drift = []

    def run(self):
        while not self.stop_event.wait(self.period):
            snap = {k: v.copy() for k, v in self.params.items()}
            if self.trace:
                old = self.trace[-1][1]
                self.drift.append(sum(float(np.abs(snap[k] - old[k]).mean()) for k in snap))
            self.trace.append((time.time(), snap))


def train_step(params, rng):
    x = rng.normal(size=(48, DIM))
    h = np.tanh(x @ params["w"] + params["b"])
    err = h - np.roll(x, 1, axis=1)
    params["w"] -= 0.01 * x.T @ (err * (1 - h**2)) / len(x)
    params["b"] -= 0.01 * err.mean(axis=0)
    return float((err**2).mean())


def main():
    rng = np.random.default_rng(0)
    params = {"w": rng.normal(0, 0.1, size=(DIM, DIM)), "b": np.zeros(DIM)}
    mon = Monitor(params, period=0.02)
    mon.start()
    losses = []
    start = time.perf_counter()
    while time.perf_counter() - start < T:
        losses.append(train_step(params, rng))
        time.sleep(0.002)
    mon.stop_event.set()
    mon.join()
    print("steps", len(losses) > 0, "snapshots", len(mon.trace) >= 0, "loss", losses[-1] < 10)


main()
