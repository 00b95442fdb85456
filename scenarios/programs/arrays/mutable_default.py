"""A default argument is one list for all calls, and each call adds to it.

Fixed: A function that needs a list makes one in each call.
"""

import numpy as np
from tlmem.scenarios.harness.switch import FIXED, repeat

OUTCOME = "leak"
CLASS = "cache-only-grows"
HELD_BY = "list (default argument of smooth())"


def smooth(signal: np.ndarray, parts: list[np.ndarray] = []) -> float:  # noqa: B006
    if FIXED:
        parts = []
    parts.append(np.convolve(signal, np.ones(5) / 5))  # leaks here
    return float(sum(part.max() for part in parts[-3:]))


def main() -> None:
    chance = np.random.default_rng(4)
    total = 0.0
    for _ in repeat(12_000, fixed=4_000):
        total += smooth(chance.random(1_200))
    print(f"{total:.1f}")


if __name__ == "__main__":
    main()
