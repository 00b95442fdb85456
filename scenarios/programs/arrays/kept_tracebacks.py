"""Collected errors keep their tracebacks, these the frames, and the frames their arrays.

Fixed: Of the errors that kept-tracebacks collects, what they say is kept, without their frames.
"""

import numpy as np
from tlmem.scenarios.harness.switch import FIXED, repeat

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
    for _ in range(40):  # checks take their time
        scaled.sort()
    if number % 3 == 0:
        raise BadBatch(f"batch {number} has sum {scaled.sum():.1f}")
    return float(scaled.max())


def main() -> None:
    errors: list[BadBatch] = []
    said: set[str] = set()
    best = 0.0
    for number in repeat(20_000, fixed=2_000):
        try:
            best = max(best, check(number))
        except BadBatch as error:
            if FIXED:
                said.add(str(error)[-2:])
            else:
                errors.append(error)
    print(f"best {best:.1f}, {len(errors)} bad batches, {len(said)} endings of what they say")


if __name__ == "__main__":
    main()
