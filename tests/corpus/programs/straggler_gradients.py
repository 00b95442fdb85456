"""Parameter server with four workers: gradients are summed when all have come, one seldom comes."""
import sys
import threading
import time
from collections import defaultdict
from multiprocessing.dummy import Pool

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
DIM, WORKERS = 3000, 4


class ParameterServer:
    def __init__(self):
        self.w = np.zeros(DIM)
        self.pending = defaultdict(dict)
        self.lock = threading.Lock()
        self.applied = 0

    def push(self, step, worker, grad):
        with self.lock:
            slot = self.pending[step]
            slot[worker] = grad
            if len(slot) == WORKERS:
                self.w -= 0.1 * sum(slot.values()) / WORKERS
                del self.pending[step]
                self.applied += 1


def gradient(w, rng):
    x = rng.normal(size=DIM)
    err = float(x @ w) / DIM - 1.0
    return err * x / np.linalg.norm(x)


def work(args):
    server, worker, step, seed = args
    rng = np.random.default_rng(seed)
    if worker == 3 and rng.random() < 0.2:      # pre-empted machine: this step never arrives
        return 0
    g = gradient(server.w, rng)
    server.push(step, worker, g)
    return 1


def main():
    server = ParameterServer()
    start = time.perf_counter()
    step = pushed = 0
    with Pool(2) as pool:
        while time.perf_counter() - start < T:
            jobs = [(server, k, step, step * WORKERS + k) for k in range(WORKERS)]
            pushed += sum(pool.map(work, jobs, chunksize=1))
            step += 1
            time.sleep(0.002)
    print("steps", step > 0, "applied", server.applied <= step, "pushed", pushed > 0)


main()
