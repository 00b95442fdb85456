"""Each instance has a list of its own, which goes with it."""

import numpy as np
from tlmem.scenarios.harness.switch import long_enough

OUTCOME = "stable"


class Sensor:
    """Smooths what it measures; a new one serves each request."""

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)
        self.samples: list[np.ndarray] = []

    def measure(self) -> float:
        self.samples.append(self.chance.random(4_000))
        return float(np.mean(self.samples[-3:]))


def main() -> None:
    total = 0.0
    for request in long_enough(6000):
        sensor = Sensor(request)
        total += sensor.measure()
    print(f"{total:.1f}")


if __name__ == "__main__":
    main()
