"""Vector search: the index is rebuilt now and then; old generations stay 'for running queries'."""
import sys
import time
from dataclasses import dataclass

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
DIM, ITEMS, CELLS = 32, 3000, 16


@dataclass
class Index:
    generation: int
    centres: np.ndarray
    cells: list
    ids: list

    def search(self, q, k=3):
        c = int(((self.centres - q) ** 2).sum(1).argmin())
        d = ((self.cells[c] - q) ** 2).sum(1)
        order = np.argsort(d)[:k]
        return [int(self.ids[c][i]) for i in order]


class Server:
    def __init__(self):
        self.generations = []

    @property
    def current(self):
        return self.generations[-1]

    def rebuild(self, items, rng):
        centres = items[rng.choice(len(items), CELLS, replace=False)]
        dist = ((items[:, None, :8] - centres[None, :, :8]) ** 2).sum(-1)
        owner = dist.argmin(1)
        ids = [np.flatnonzero(owner == c) for c in range(CELLS)]
        cells = [items[i] for i in ids]
        self.generations.append(Index(len(self.generations), centres, cells, ids))


def main():
    rng = np.random.default_rng(0)
    items = rng.normal(size=(ITEMS, DIM))
    server = Server()
    server.rebuild(items, rng)
    start = time.perf_counter()
    answered = 0
    while (t := time.perf_counter() - start) < T:
        if t / T * 14 > len(server.generations):
            items[rng.integers(0, ITEMS, 100)] = rng.normal(size=(100, DIM))
            server.rebuild(items, rng)
        q = rng.normal(size=DIM)
        answered += len(server.current.search(q)) > 0
        time.sleep(0.003)
    print("answered", answered > 0, "generation", server.current.generation >= 0)


main()
