import time
import numpy as np


def cycle(store, n):
    base = np.arange(125_000, dtype=float)
    store["a"].append(base + n)
    store["b"].append(base * n)
    store["c"].append(base ** 0.5)
    store["d"].append(base - n)
    store["e"].append(np.flip(base).copy())
    store["f"].append(np.roll(base, n))


STORE = {k: [] for k in "abcdef"}
for n in range(9):
    cycle(STORE, n)
    t0 = time.monotonic()
    x = 0.0
    while time.monotonic() - t0 < 0.45:
        x += sum(j * 0.5 for j in range(1_000))
        time.sleep(0.003)
