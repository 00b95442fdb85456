"""Training from an HDF5 file with a prefetching loader thread; scalars are kept per epoch."""
import os
import queue
import sys
import tempfile
import threading
import time

import h5py
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
N, DIM, BATCH = 2048, 128, 128


def make_file(path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, DIM)).astype(np.float32)
    w = rng.normal(size=DIM)
    with h5py.File(path, "w") as f:
        f.create_dataset("x", data=x, chunks=(BATCH, DIM))
        f.create_dataset("y", data=(x @ w > 0).astype(np.float32))


class Loader(threading.Thread):
    def __init__(self, path, depth):
        super().__init__(daemon=True)
        self.path, self.q, self.stop = path, queue.Queue(depth), False

    def run(self):
        rng = np.random.default_rng(1)
        with h5py.File(self.path) as f:
            while not self.stop:
                for s in rng.permutation(N // BATCH) * BATCH:
                    xb = f["x"][s:s + BATCH]
                    yb = f["y"][s:s + BATCH]
                    noise = rng.normal(0, 0.05, xb.shape).astype(np.float32)
                    self.q.put((xb + noise, yb))
                self.q.put(None)


def main():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "train.h5")
        make_file(path)
        loader = Loader(path, 24)
        loader.start()
        w = np.zeros(DIM, np.float32)
        history, losses = [], []
        end = time.perf_counter() + T
        while time.perf_counter() < end:
            item = loader.q.get()
            if item is None:
                history.append({"loss": float(np.mean(losses)), "norm": float(np.linalg.norm(w))})
                losses.clear()
                continue
            xb, yb = item
            p = 1 / (1 + np.exp(-(xb @ w)))
            w -= 0.1 * xb.T @ (p - yb) / BATCH
            losses.append(float(-np.mean(yb * np.log(p + 1e-9))))
            time.sleep(0.003)
        loader.stop = True
        while loader.is_alive():
            try:
                loader.q.get(timeout=0.02)
            except queue.Empty:
                pass
    print("trained:", len(history) >= 0 and bool(np.isfinite(w).all()))


main()
