"""A worker opens one ExitStack for its life and enters the scratch buffer of every request into it."""
import contextlib
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0


@contextlib.contextmanager
def scratch(shape):
    buf = np.zeros(shape)
    try:
        yield buf
    finally:
        buf.fill(0)


class Worker:
    def __init__(self):
        self.stack = contextlib.ExitStack()
        self.lock = threading.Lock()
        self.done = 0

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.stack.close()

    def handle(self, coeffs):
        with self.lock:
            buf = self.stack.enter_context(scratch((40, 100)))
        x = np.linspace(-1, 1, buf.shape[1])
        for k, c in enumerate(coeffs):
            buf[k] = c * np.cos(k * np.arccos(x))
        self.done += 1
        return float(buf.sum(axis=0).max())


def requests(rng, end):
    while time.perf_counter() < end:
        yield [rng.normal(size=40) for _ in range(2)]
        time.sleep(0.004)


def main():
    rng = np.random.default_rng(0)
    peaks = []
    with Worker() as worker, ThreadPoolExecutor(2) as pool:
        for pair in requests(rng, time.perf_counter() + T):
            peaks.extend(pool.map(worker.handle, pair))
    print("handled", worker.done == len(peaks), "peaks", len(peaks) > 0)


main()
