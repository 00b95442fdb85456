"""Reads a table as text, cleans columns, writes them again: bytes, strings, records."""

import io

import numpy as np

rng = np.random.default_rng(11)
totals = []
for part in range(8):
    rows = 15_000 + 2_000 * part
    text = io.StringIO()
    np.savetxt(text, np.column_stack([rng.integers(0, 99, rows), rng.random((rows, 4))]), "%.6g")
    text.seek(0)
    data = np.loadtxt(text)
    table = np.zeros(rows, dtype=[("key", "i4"), ("name", "U12"), ("value", "f8", 4)])
    table["key"], table["value"] = data[:, 0], data[:, 1:]
    table["name"] = np.char.mod("n%05d", table["key"])
    table = table[np.isfinite(table["value"]).all(1) & (table["value"][:, 0] > 0.1)]
    groups = [table[table["key"] == key] for key in range(99)]
    totals.append(groups if part % 3 == 0 else [each["value"].sum(0) for each in groups])
    packed = table.tobytes()
    assert np.frombuffer(packed, table.dtype).shape == table.shape
print(len(totals))
