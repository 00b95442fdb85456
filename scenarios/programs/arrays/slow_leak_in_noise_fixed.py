"""The log of slow-leak-in-noise keeps the latest hundred rows, under the same noise."""

from collections import deque

import numpy as np

OUTCOME = "stable"


class Log:
    """Keeps a short row for each of the latest steps."""

    def __init__(self) -> None:
        self.rows: deque[np.ndarray] = deque(maxlen=100)

    def add(self, image: np.ndarray) -> None:
        self.rows.append(image[:128].copy())


def main() -> None:
    chance = np.random.default_rng(3)
    log = Log()
    for _ in range(1000):
        size = int(chance.integers(20_000, 400_000))
        image = np.arange(size, dtype=float)
        mask = image > size / 2
        log.add(np.sqrt(image) * mask)


if __name__ == "__main__":
    main()
