"""A tensor of SIZE bytes is kept in each of 2000 iterations, under noise that SEED decides.

The noise is that of a training loop whose batches differ in size: scopes with temporaries, a window
of results that are replaced in no order, and pauses.
"""

import random
import sys
import time

import tlmem

OUTCOME = "leak"
ITERATIONS = 2000


class Noise:
    """Allocates and frees in no order; what it keeps at a time is bounded."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.window: list[tlmem.Tensor | None] = [None] * 64

    def step(self) -> float:
        """A scope with temporaries, sometimes a pause; some results are replaced."""
        chance, total = self.chance, 0.0
        with tlmem.scope("step"):
            for _ in range(chance.randint(1, 6)):
                batch = tlmem.full((chance.randint(1, 4000),), chance.random())
                total += float((batch * batch).sum().item())
        if chance.random() < 0.5:
            self.window[chance.randrange(64)] = tlmem.ones((chance.randint(1, 2000),))
        if chance.random() < 0.05:
            time.sleep(chance.uniform(0, 0.004))
        return total


def main(size: int, seed: int) -> None:
    noise, kept, total = Noise(seed), [], 0.0
    for step in range(ITERATIONS):
        total += noise.step()
        kept.append(tlmem.full((size // 4,), step % 256, dtype="float32"))  # leaks here
    print(f"{total:.6e}, {len(kept)} kept")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
