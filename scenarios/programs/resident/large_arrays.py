"""Arrays of 40 to 80 MB: each a mapping of its own, a few at once."""

import time

import numpy as np


def main() -> None:
    window: list[np.ndarray] = []
    for step in range(16):
        window.append(np.full(5_000_000 + step * 300_000, 1.0))
        window = window[-3:]
        time.sleep(0.03)
    print(len(window))


if __name__ == "__main__":
    main()
