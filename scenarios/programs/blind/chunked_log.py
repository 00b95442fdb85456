"""A binary log read in chunks: records parsed, grouped by key, sessions closed and summarised."""

import io

import numpy as np

rng = np.random.default_rng(21)
record = np.dtype([("key", "u4"), ("time", "f8"), ("value", "f4"), ("flags", "u2")])
log = io.BytesIO()
for start in range(0, 900_000, 90_000):
    block = np.zeros(90_000, record)
    block["key"] = rng.integers(0, 3_000, 90_000)
    block["time"] = start + np.sort(rng.random(90_000) * 90_000)
    block["value"] = rng.gamma(2.0, 3.0, 90_000)
    block["flags"] = rng.integers(0, 16, 90_000)
    log.write(block.tobytes())
log.seek(0)
open_sessions: dict[int, list[np.ndarray]] = {}
closed = []
while data := log.read(record.itemsize * 7_000):
    chunk = np.frombuffer(data, record)
    chunk = chunk[chunk["flags"] & 1 == 0]
    order = np.argsort(chunk["key"], kind="stable")
    keys, starts = np.unique(chunk["key"][order], return_index=True)
    for key, part in zip(keys.tolist(), np.split(chunk[order], starts[1:]), strict=True):
        open_sessions.setdefault(key, []).append(part.copy())
        if len(open_sessions[key]) >= 12:
            whole = np.concatenate(open_sessions.pop(key))
            closed.append((key, np.percentile(whole["value"], [5, 50, 95]), len(whole)))
print(len(closed), len(open_sessions))
