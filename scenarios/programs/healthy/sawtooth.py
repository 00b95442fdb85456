"""Batches are collected until there are enough, then written out and forgotten."""

import numpy as np
from tlmem.scenarios.harness.switch import long_enough

OUTCOME = "stable"


def main() -> None:
    chance = np.random.default_rng(1)
    batches: list[np.ndarray] = []
    written = 0
    for _ in long_enough(20_000):
        batches.append(chance.random(2_500))
        if len(batches) == 150:
            written += np.concatenate(batches).nbytes
            batches.clear()
    print(f"{written} bytes written")


if __name__ == "__main__":
    main()
