"""A C library keeps SIZE bytes in each of 2000 iterations, under noise that SEED decides.

Arrays come and go as in ``arrays.py``, all of them freed: only resident memory tells.
"""

import ctypes
import sys
import time

import numpy as np

OUTCOME = "native"
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
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    noise, total = Noise(seed), 0.0
    for step in range(ITERATIONS):
        total += noise.step()
        libc.memset(libc.malloc(size), step % 256, size)
    print(f"{total:.6e}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
