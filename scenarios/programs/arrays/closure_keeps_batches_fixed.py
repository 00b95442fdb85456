"""A function that averages keeps in its closure a mean for each of the latest batches."""

from collections import deque
from collections.abc import Callable

import numpy as np
from tlmem.scenarios.harness.switch import long_enough

OUTCOME = "stable"


def averager() -> Callable[[np.ndarray], float]:
    means: deque[float] = deque(maxlen=10)

    def add(batch: np.ndarray) -> float:
        means.append(float(batch.mean()))
        return sum(means) / len(means)

    return add


average = averager()


def main() -> None:
    chance = np.random.default_rng(5)
    latest = 0.0
    for _ in long_enough(8000):
        latest = average(chance.random(2_000))
    print(f"{latest:.3f}")


if __name__ == "__main__":
    main()
