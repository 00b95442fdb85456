"""A generator remembers the window before the one that it hands out, and no other."""

from collections.abc import Iterator

import numpy as np

OUTCOME = "stable"


def windows(count: int) -> Iterator[np.ndarray]:
    chance = np.random.default_rng(9)
    before = np.zeros(2_000)
    for _ in range(count):
        now = np.cumsum(chance.normal(size=2_000))
        yield now - before
        before = now


def main() -> None:
    highest = 0.0
    for window in windows(6000):
        highest = max(highest, float(window.max()))
    print(f"{highest:.1f}")


if __name__ == "__main__":
    main()
