"""A graph as lists of neighbours: built from dictionaries of small arrays, ranks, components."""

import numpy as np

rng = np.random.default_rng(7)
graph: dict[int, np.ndarray] = {}
for node in range(40_000):
    graph[node] = np.unique(rng.integers(0, 40_000, int(rng.pareto(1.5) * 6) + 1))
heads = np.concatenate(list(graph.values()))
tails = np.repeat(np.arange(len(graph)), [len(each) for each in graph.values()])
degree = np.bincount(tails, minlength=len(graph)).astype(float)
rank = np.full(len(graph), 1 / len(graph))
history = []
for _step in range(60):
    rank = 0.15 / len(graph) + 0.85 * np.bincount(heads, rank[tails] / degree[tails], len(graph))
    history.append(rank)
label = np.arange(len(graph))
for _step in range(20):
    low = label.copy()
    np.minimum.at(low, heads, label[tails])
    np.minimum.at(low, tails, label[heads])
    label = low
for node in range(0, 40_000, 2):
    del graph[node]
print(len(np.unique(label)), len(history), len(graph))
