"""Calls, dictionaries and strings without a single array: what recording costs who has none."""

import sys
import time
from collections.abc import Callable


def fibonacci(n: int) -> int:
    """By definition, with as many calls as the result is large."""
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def count_words(rounds: int) -> int:
    """Makes and drops dictionaries of small strings."""
    distinct = 0
    for round_ in range(rounds):
        counts: dict[str, int] = {}
        for i in range(2000):
            word = f"word {i * round_ % 997}"
            counts[word] = counts.get(word, 0) + 1
        distinct += len(sorted(counts))
    return distinct


def prepare() -> dict[str, Callable[[int], object]]:
    """A unit is a few milliseconds of calls and words."""

    def work(units: int) -> None:
        for _ in range(units):
            fibonacci(19)
            count_words(2)

    return {"pure_python": work}


if __name__ == "__main__":
    began = time.monotonic_ns()
    for _ in range(int(900 * float(sys.argv[1])) or 1):
        fibonacci(23)
        count_words(10)
    print(began, time.monotonic_ns())
