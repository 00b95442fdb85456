"""A list that was meant for each instance is an attribute of the class: all instances share it.

Fixed: Each instance has a list of its own, which goes with it.
"""

import numpy as np
from tlmem.scenarios.harness.switch import FIXED, repeat

OUTCOME = "leak"
CLASS = "cache-only-grows"
HELD_BY = "list 'samples' (class attribute of Sensor)"


class Sensor:
    """Smooths what it measures; a new one serves each request."""

    samples: list[np.ndarray] = []

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)
        if FIXED:
            self.samples = []

    def measure(self) -> float:
        self.samples.append(self.chance.random(4_000))  # leaks here
        return float(np.mean(self.samples[-3:]))


def main() -> None:
    total = 0.0
    for request in repeat(6000, fixed=6000):
        sensor = Sensor(request)
        total += sensor.measure()
    print(f"{total:.1f}")


if __name__ == "__main__":
    main()
