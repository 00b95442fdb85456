"""A C library allocates in each call and nobody frees: arrays and Python's heap stay flat.

Fixed: What native-malloc allocates in a C library is freed by its caller.
"""

import ctypes

import numpy as np
from tlmem.scenarios.harness.switch import FIXED, repeat

OUTCOME = "native"


def main() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.free.restype = None
    total = 0.0
    for step in repeat(4000, fixed=3000):
        block = libc.malloc(6_000)
        libc.memset(block, step % 256, 6_000)
        total += float(np.sqrt(np.arange(20_000.0)).sum())
        if FIXED:
            libc.free(block)
    print(f"{total:.6e}")


if __name__ == "__main__":
    main()
