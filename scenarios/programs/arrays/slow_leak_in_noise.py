"""One kilobyte is kept in each step, under megabytes of temporaries of ever different sizes.

Fixed: The log of slow-leak-in-noise keeps the latest hundred rows, under the same noise.
"""

from collections import deque
from collections.abc import MutableSequence

import numpy as np
from tlmem.scenarios.harness.switch import FIXED

OUTCOME = "leak"
CLASS = "cache-only-grows"
HELD_BY = "list 'rows' of Log (local variable 'log' of main() at slow_leak_in_noise.py)"
COUNT = 500
BYTES = 512_000


class Log:
    """Keeps a short row for each step."""

    def __init__(self) -> None:
        self.rows: MutableSequence[np.ndarray] = deque(maxlen=100) if FIXED else []

    def add(self, image: np.ndarray) -> None:
        self.rows.append(image[:128].copy())  # leaks here


def main() -> None:
    chance = np.random.default_rng(3)
    log = Log()
    for _ in range(1000 if FIXED else 500):
        size = int(chance.integers(20_000, 400_000))
        image = np.arange(size, dtype=float)
        mask = image > size / 2
        log.add(np.sqrt(image) * mask)


if __name__ == "__main__":
    main()
