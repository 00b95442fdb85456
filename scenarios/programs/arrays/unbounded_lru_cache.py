"""A function cache without a bound, called with ever new arguments."""

from functools import cache

import numpy as np

OUTCOME = "leak"
TWIN = "bounded-lru-cache"
CLASS = "cache-only-grows"
HELD_BY = "lru_cache of window() (module __main__)"


@cache
def window(length: int) -> np.ndarray:
    ramp = np.linspace(0.0, 1.0, length)
    return np.sin(np.pi * ramp) ** 2  # leaks here


def main() -> None:
    total = 0.0
    for step in range(8000):
        signal = np.arange(500 + step, dtype=float)
        total += float((signal * window(500 + step)).sum())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
