"""Arrays that are resized again and again, small ones and large ones."""

import time

import numpy as np


def main() -> None:
    small = [np.ones(500) for _ in range(60)]
    large = np.ones(100_000)
    for step in range(60):
        for each in small:
            each.resize(500 + 250 * step, refcheck=False)
            each.fill(1.0)
        large.resize(100_000 + 60_000 * step, refcheck=False)
        large.fill(1.0)
        time.sleep(0.008)
    print(len(small), large.size)


if __name__ == "__main__":
    main()
