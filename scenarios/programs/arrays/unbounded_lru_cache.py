"""A function cache without a bound, called with ever new arguments.

Fixed: lru_cache with a bound: full after a moment, and then as many go as come.
"""

from functools import lru_cache

import numpy as np
from tlmem.scenarios.harness.switch import FIXED, repeat

OUTCOME = "leak"
TWIN = "bounded-lru-cache"
CLASS = "cache-only-grows"
HELD_BY = "lru_cache of window() (module __main__)"


@lru_cache(maxsize=128 if FIXED else None)
def window(length: int) -> np.ndarray:
    ramp = np.linspace(0.0, 1.0, length)
    return np.sin(np.pi * ramp) ** 2  # leaks here


def main() -> None:
    total = 0.0
    for step in repeat(8000, fixed=8000):
        length = 500 + 4099 * step % 8000  # 8000 different lengths, in no order
        signal = np.arange(length, dtype=float)
        total += float((signal * window(length)).sum())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
