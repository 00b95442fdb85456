"""A dict remembers every answer and forgets none."""

import numpy as np

OUTCOME = "leak"
TWIN = "bounded-lru-cache"
CLASS = "cache-only-grows"
HELD_BY = "dict 'answers' (module __main__)"
COUNT = 4000
BYTES = 19_200_000

answers: dict[int, np.ndarray] = {}


def solve(seed: int) -> np.ndarray:
    chance = np.random.default_rng(seed)
    matrix = chance.random((60, 60)) + 60 * np.eye(60)
    return np.linalg.solve(matrix, chance.random(60))


def answer(seed: int) -> np.ndarray:
    if seed not in answers:
        answers[seed] = solve(seed).repeat(10)  # leaks here
    return answers[seed]


def main() -> None:
    for request in range(4000):
        answer(request).sum()


if __name__ == "__main__":
    main()
