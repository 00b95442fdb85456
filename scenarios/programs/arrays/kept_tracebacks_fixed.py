"""Of the errors that kept-tracebacks collects, what they say is kept, without their frames."""

import numpy as np

OUTCOME = "stable"


class BadBatch(Exception):
    """A batch that cannot be used."""


def check(number: int) -> float:
    batch = np.full(4_000, float(number))
    scaled = batch / 7
    if number % 3 == 0:
        raise BadBatch(f"batch {number}")
    return float(scaled.max())


def main() -> None:
    bad = set()
    best = 0.0
    for number in range(30_000):
        try:
            best = max(best, check(number))
        except BadBatch as error:
            bad.add(str(error)[-2:])
    print(f"best {best:.1f}, {len(bad)} endings of bad batches")


if __name__ == "__main__":
    main()
