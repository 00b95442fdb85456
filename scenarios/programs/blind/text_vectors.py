"""Texts to vectors: counts of words, weights, a product by a random basis, nearest neighbours."""

from collections import Counter

import numpy as np

rng = np.random.default_rng(8)
words = [f"w{n:05d}" for n in range(6_000)]
chance = 1 / np.arange(1, 6_001)
chance /= chance.sum()
texts = [
    " ".join(words[i] for i in rng.choice(6_000, rng.integers(30, 200), p=chance))
    for _ in range(2_500)
]
known: dict[str, int] = {}
rows, columns, counts = [], [], []
for number, text in enumerate(texts):
    for word, count in Counter(text.split()).items():
        rows.append(number)
        columns.append(known.setdefault(word, len(known)))
        counts.append(count)
table = np.zeros((len(texts), len(known)), np.float32)
table[np.array(rows), np.array(columns)] = counts
table *= np.log(len(texts) / (1 + (table > 0).sum(0)))
vectors = table @ rng.standard_normal((len(known), 64)).astype(np.float32)
del table
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9
nearest = {}
for start in range(0, len(vectors), 128):
    scores = vectors[start : start + 128] @ vectors.T
    for row, best in enumerate(np.argpartition(-scores, 6, axis=1)[:, :6]):
        nearest[start + row] = best.copy()
print(len(nearest), len(known))
