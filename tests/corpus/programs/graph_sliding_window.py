"""Interaction graph of the recent events; nodes carry embeddings and are dropped when idle."""
import sys
import time
from collections import deque

import networkx as nx
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
WINDOW = 300
DIM = 512


class Interactions:
    def __init__(self):
        self.g = nx.Graph()
        self.events = deque()

    def node(self, n, rng):
        if n not in self.g:
            self.g.add_node(n, emb=rng.normal(size=DIM))

    def add(self, a, b, rng):
        self.node(a, rng)
        self.node(b, rng)
        if self.g.has_edge(a, b):
            self.g[a][b]["n"] += 1
        else:
            self.g.add_edge(a, b, n=1)
        self.events.append((a, b))
        while len(self.events) > WINDOW:
            self.forget(*self.events.popleft())

    def forget(self, a, b):
        self.g[a][b]["n"] -= 1
        if self.g[a][b]["n"] == 0:
            self.g.remove_edge(a, b)
        for n in {a, b}:
            if n in self.g and self.g.degree(n) == 0:
                self.g.remove_node(n)

    def propagate(self, sample):
        for n in sample:
            nb = [self.g.nodes[m]["emb"] for m in self.g[n]]
            if nb:
                self.g.nodes[n]["emb"] = 0.5 * self.g.nodes[n]["emb"] + 0.5 * np.mean(nb, axis=0)


def main():
    rng = np.random.default_rng(12)
    world = Interactions()
    start = time.perf_counter()
    step, largest = 0, 0
    while time.perf_counter() - start < T:
        base = step // 2                       # users come and go
        a, b = (int(v) for v in base + rng.integers(0, 40, size=2))
        if a != b:
            world.add(a, b, rng)
        world.propagate(list(world.g)[-5:])
        if step % 25 == 0 and len(world.g):
            largest = max(map(len, nx.connected_components(world.g)))
        step += 1
        time.sleep(0.002)
    print("events", len(world.events) <= WINDOW, "largest", largest >= 0)


main()
