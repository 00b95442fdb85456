"""An array of SIZE bytes is kept in each of 2000 iterations, under noise that SEED decides.

The noise is what other parts of a program do: temporaries whose sizes differ by a factor of ten
thousand, a window of results that are replaced in no order, bursts, and pauses.
"""

import sys
import time

import numpy as np

OUTCOME = "leak"
ITERATIONS = 2000


class Noise:
    """Allocates and frees in no order; what it keeps at a time is bounded."""

    def __init__(self, seed: int) -> None:
        self.chance = np.random.default_rng(seed)
        self.window: list[np.ndarray | None] = [None] * 64

    def step(self) -> float:
        """Some temporaries, sometimes many, sometimes a pause; some results are replaced."""
        chance, total = self.chance, 0.0
        for _ in range(int(chance.integers(1, 12))):
            size = int(np.exp(chance.uniform(2, 11)))
            total += float(np.arange(size, dtype=float).sum())
        if chance.random() < 0.02:
            burst = [np.ones(int(chance.integers(1, 20_000))) for _ in range(50)]
            total += len(burst)
        if chance.random() < 0.5:
            self.window[int(chance.integers(64))] = chance.random(int(chance.integers(1, 4000)))
        if chance.random() < 0.05:
            time.sleep(float(chance.uniform(0, 0.004)))
        return total


def main(size: int, seed: int) -> None:
    noise, kept, total = Noise(seed), [], 0.0
    for step in range(ITERATIONS):
        total += noise.step()
        kept.append(np.full(size, step % 256, np.uint8))  # leaks here
    print(f"{total:.6e}, {len(kept)} kept")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
