"""A C library keeps SIZE bytes in each of 2000 iterations, under noise that SEED decides.

Arrays come and go as in ``arrays.py``, all of them freed: only resident memory tells.
"""

import ctypes
import sys

from tlmem.scenarios.programs.seeded.arrays import Noise

OUTCOME = "native"
ITERATIONS = 2000


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
