"""Arrays of 64 kB up to 90 MB, dropped, and once more."""

import time

import numpy as np


def main() -> None:
    for _ in range(2):
        kept = []
        for _ in range(30):
            kept += [np.ones(8_000) for _ in range(47)]
            time.sleep(0.008)
        del kept
        time.sleep(0.1)


if __name__ == "__main__":
    main()
