"""Large arrays of zeros, and uninitialised ones, of which only a part is ever written."""

import numpy as np


def main() -> None:
    kept, total = [], 0.0
    for step in range(50):
        zeros, empty = np.zeros(800_000), np.empty(800_000)
        zeros[: 80_000 + 1000 * step] = step
        empty[-60_000:] = step
        kept += [zeros, empty]
        for _ in range(20):
            total += float(np.sqrt(np.arange(50_000.0)).sum())
    print(f"{total:.6e}")


if __name__ == "__main__":
    main()
