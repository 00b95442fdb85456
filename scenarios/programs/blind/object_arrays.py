"""Ragged rows as arrays of objects: sorted, padded to batches, merged, written as JSON."""

import json

import numpy as np

rng = np.random.default_rng(12)
ragged = np.empty(9_000, object)
for i in range(len(ragged)):
    ragged[i] = rng.integers(0, 1_000, rng.integers(3, 400)).astype(np.int32)
lines = []
for epoch in range(4):
    order = np.argsort([len(row) for row in ragged], kind="stable")
    for start in range(0, len(order), 150):
        rows = ragged[order[start : start + 150]]
        width = max(len(row) for row in rows)
        batch = np.zeros((len(rows), width), np.int32)
        mask = np.zeros((len(rows), width), bool)
        for i, row in enumerate(rows):
            batch[i, : len(row)] = row
            mask[i, : len(row)] = True
        means = np.where(mask, batch, 0).sum(1) / mask.sum(1)
        lines.append(json.dumps({"epoch": epoch, "means": means.round(2).tolist()}))
    for i in rng.integers(0, len(ragged), 2_000):
        ragged[i] = np.concatenate([ragged[i][-200:], rng.integers(0, 1_000, 20).astype(np.int32)])
print(len(lines), sum(map(len, ragged)))
