"""Rounds of work for a pool of threads; the results of a round are summed up and dropped."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from tlmem.scenarios.harness.switch import long_enough

OUTCOME = "stable"


def work(seed: int) -> np.ndarray:
    sample = np.random.default_rng(seed).random(8_000)
    return np.sort(sample)[::10].copy()


def main() -> None:
    total = 0.0
    with ThreadPoolExecutor(4) as pool:
        for turn in long_enough(40):
            results = list(pool.map(work, range(turn * 50, turn * 50 + 50)))
            total += float(sum(result.sum() for result in results))
    print(f"{total:.3f}")


if __name__ == "__main__":
    main()
