"""A queue of arrays of 1 kB to 8 MB, the oldest dropped first."""

import time
from collections import deque

import numpy as np


def main() -> None:
    chance = np.random.default_rng(3)
    waiting: deque[np.ndarray] = deque()
    for size in np.exp(chance.uniform(np.log(128), np.log(1_000_000), 400)):
        waiting.append(np.ones(int(size)))
        if len(waiting) > 120:
            waiting.popleft()
        time.sleep(0.002)
    print(len(waiting))


if __name__ == "__main__":
    main()
