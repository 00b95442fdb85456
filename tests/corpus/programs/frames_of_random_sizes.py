"""Group-by of frames of random sizes; nothing is kept, and Python's heap reaches a plateau."""
import sys
import time

import numpy as np
import pandas as pd

T = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0


def step(rng):
    n = int(rng.integers(1_000, 200_000))
    frame = pd.DataFrame(
        {
            "key": rng.integers(0, n // 10 + 1, n),
            "value": rng.random(n),
            "text": rng.integers(0, 99, n).astype(str),
        }
    )
    return frame.groupby("key")["value"].sum().sort_values().head(3)


def main():
    rng = np.random.default_rng(0)
    start, n = time.perf_counter(), 0
    while time.perf_counter() - start < T:
        step(rng)
        n += 1
    print("frames", n > 0)


main()
