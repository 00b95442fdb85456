"""lru_cache with a bound: full after a moment, and then as many go as come."""

from functools import lru_cache

import numpy as np

OUTCOME = "stable"


@lru_cache(maxsize=128)
def window(length: int) -> np.ndarray:
    return np.sin(np.linspace(0.0, np.pi, length)) ** 2


def main() -> None:
    total = 0.0
    for step in range(12_000):
        length = 500 + step * 7 % 1000
        total += float((np.arange(length) * window(length)).sum())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
