"""A replay buffer is a deque, but nobody gave it a length.

Fixed: A replay buffer with a length: the oldest goes when a new one comes.
"""

from collections import deque

import numpy as np
from tlmem.scenarios.harness.switch import FIXED, repeat

OUTCOME = "leak"
CLASS = "cache-only-grows"
HELD_BY = (
    "deque 'memory' of Replay (local variable 'replay' of main() at unbounded_deque.py) "
    "through item 1 of a tuple"
)


class Replay:
    """Keeps what an agent has seen."""

    def __init__(self) -> None:
        self.memory: deque[tuple[int, np.ndarray]] = deque(maxlen=200 if FIXED else None)

    def remember(self, step: int, state: np.ndarray) -> None:
        self.memory.append((step, state))


def main() -> None:
    chance = np.random.default_rng(2)
    replay = Replay()
    reward = 0.0
    state = np.zeros(1_200)
    for step in repeat(8000, fixed=8000):
        state = 0.9 * state + chance.normal(size=1_200)  # leaks here
        replay.remember(step, state)
        reward += float(replay.memory[-1][1].max())
    print(f"{reward:.1f}")


if __name__ == "__main__":
    main()
