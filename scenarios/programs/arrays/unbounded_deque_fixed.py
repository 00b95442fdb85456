"""A replay buffer with a length: the oldest goes when a new one comes."""

from collections import deque

import numpy as np
from tlmem.scenarios.harness.switch import long_enough

OUTCOME = "stable"


class Replay:
    """Keeps what an agent has seen lately."""

    def __init__(self) -> None:
        self.memory: deque[tuple[int, np.ndarray]] = deque(maxlen=200)

    def remember(self, step: int, state: np.ndarray) -> None:
        self.memory.append((step, state))


def main() -> None:
    chance = np.random.default_rng(2)
    replay = Replay()
    reward = 0.0
    state = np.zeros(1_200)
    for step in long_enough(8000):
        state = 0.9 * state + chance.normal(size=1_200)
        replay.remember(step, state)
        reward += float(replay.memory[-1][1].max())
    print(f"{reward:.1f}")


if __name__ == "__main__":
    main()
