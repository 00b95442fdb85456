"""Collected errors keep their tracebacks, these the frames, and the frames their arrays."""

import numpy as np

OUTCOME = "leak"
CLASS = "cache-only-grows"
HELD_BY = (
    "list 'errors' (local variable of main() at kept_tracebacks.py) through the traceback of "
    "BadBatch and local variable 'batch' of check() at kept_tracebacks.py"
)
COUNT = 6667
BYTES = 213_344_000


class BadBatch(Exception):
    """A batch that cannot be used."""


def check(number: int) -> float:
    batch = np.full(4_000, float(number))  # leaks here
    scaled = batch / 7
    for _ in range(150):  # checks take their time
        scaled.sort()
    if number % 3 == 0:
        raise BadBatch(f"batch {number} has sum {scaled.sum():.1f}")
    return float(scaled.max())


def main() -> None:
    errors = []
    best = 0.0
    for number in range(20_000):
        try:
            best = max(best, check(number))
        except BadBatch as error:
            errors.append(error)
    print(f"best {best:.1f}, {len(errors)} bad batches")


if __name__ == "__main__":
    main()
