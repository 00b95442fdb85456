"""Two arrays of 2 kB every 2 us, 10 frames deep: the most an event recorder can be asked for."""

import sys
import time
from collections.abc import Callable

import numpy as np


def iterate(frames: int, iterations: int) -> float:
    """Goes ``frames`` calls deeper, then makes and drops arrays as fast as NumPy can."""
    if frames:
        return iterate(frames - 1, iterations)
    base = np.linspace(0.0, 1.0, 250)
    total = 0.0
    for _ in range(iterations):
        product = base * base
        summed = product + base
        np.exp(summed, out=summed)
        np.log1p(product, out=product)
        summed += product
        total += summed[-1]
    return float(total)


def prepare() -> dict[str, Callable[[int], object]]:
    """A unit is 1,000 iterations."""
    return {"storm": lambda units: iterate(8, 1000 * units)}


if __name__ == "__main__":
    began = time.monotonic_ns()
    iterate(8, int(1_000_000 * float(sys.argv[1])))
    print(began, time.monotonic_ns())
