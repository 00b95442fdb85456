"""np.savez / np.load through BytesIO."""

import io

import numpy as np

rng = np.random.default_rng(0)
store = []
for n in range(40):
    arrays = {f"a{i}": rng.standard_normal(int(rng.integers(1_000, 150_000))) for i in range(6)}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=True, **arrays)
    buffer.seek(0)
    with np.load(buffer) as got:
        back = {k: got[k] for k in got.files}
    store.append(back["a0"][:5000].copy())
    if n % 4 == 0:
        store.append(buffer.getvalue())
print(len(store))
