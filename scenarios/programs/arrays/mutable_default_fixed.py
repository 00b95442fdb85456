"""A function that needs a list makes one in each call."""

import numpy as np
from tlmem.scenarios.harness.switch import long_enough

OUTCOME = "stable"


def smooth(signal: np.ndarray, parts: list[np.ndarray] | None = None) -> float:
    parts = [] if parts is None else parts
    parts.append(np.convolve(signal, np.ones(5) / 5))
    return float(sum(part.max() for part in parts[-3:]))


def main() -> None:
    chance = np.random.default_rng(4)
    total = 0.0
    for _ in long_enough(12_000):
        total += smooth(chance.random(1_200))
    print(f"{total:.1f}")


if __name__ == "__main__":
    main()
