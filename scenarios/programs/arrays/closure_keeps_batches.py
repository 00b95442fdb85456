"""A function that averages keeps in its closure every batch that it was ever given.

Fixed: A function that averages keeps in its closure a mean for each of the latest batches.
"""

from collections import deque
from collections.abc import Callable

import numpy as np
from tlmem.scenarios.harness.switch import FIXED, repeat

OUTCOME = "leak"
CLASS = "cache-only-grows"
HELD_BY = "list 'seen' (closure variable of add())"


def averager() -> Callable[[np.ndarray], float]:
    seen: list[np.ndarray] = []
    means: deque[float] = deque(maxlen=10)

    def add(batch: np.ndarray) -> float:
        if FIXED:
            means.append(float(batch.mean()))
            return sum(means) / len(means)
        seen.append(batch)
        return float(np.mean([part.mean() for part in seen[-10:]]))

    return add


average = averager()


def main() -> None:
    chance = np.random.default_rng(5)
    latest = 0.0
    for _ in repeat(8000, fixed=8000):
        latest = average(chance.random(2_000))  # leaks here
    print(f"{latest:.3f}")


if __name__ == "__main__":
    main()
