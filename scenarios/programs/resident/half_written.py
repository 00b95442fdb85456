"""Arrays of zeros of which only the first part is ever written."""

import time

import numpy as np


def main() -> None:
    kept = []
    for _ in range(30):
        made = np.zeros(500_000)
        made[:200_000] = 1.0
        kept.append(made)
        time.sleep(0.012)
    time.sleep(0.2)
    print(len(kept))


if __name__ == "__main__":
    main()
