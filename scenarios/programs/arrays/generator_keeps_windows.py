"""A generator remembers all windows it has handed out, though it needs only the last two.

Fixed: A generator remembers the window before the one that it hands out, and no other.
"""

from collections import deque
from collections.abc import Iterator, MutableSequence

import numpy as np
from tlmem.scenarios.harness.switch import FIXED

OUTCOME = "leak"
CLASS = "cache-only-grows"
HELD_BY = (
    "list 'history' (variable of generator or coroutine windows() at generator_keeps_windows.py)"
)


def windows(count: int) -> Iterator[np.ndarray]:
    chance = np.random.default_rng(9)
    history: MutableSequence[np.ndarray] = deque(maxlen=2) if FIXED else []
    for _ in range(count):
        history.append(np.cumsum(chance.normal(size=2_000)))  # leaks here
        yield history[-1] - history[max(0, len(history) - 2)]


def main() -> None:
    highest = 0.0
    for window in windows(6000):
        highest = max(highest, float(window.max()))
    print(f"{highest:.1f}")


if __name__ == "__main__":
    main()
