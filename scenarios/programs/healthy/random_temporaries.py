"""Temporaries of any size, some of them alive for a while."""

import random

import numpy as np

OUTCOME = "stable"


def main() -> None:
    chance = random.Random(5)
    alive: list[np.ndarray] = []
    for _ in range(15_000):
        alive.append(np.ones(chance.randrange(10, 60_000)) * 2)
        while len(alive) > 30 or (alive and chance.random() < 0.3):
            alive.pop(chance.randrange(len(alive)))


if __name__ == "__main__":
    main()
