"""Native blocks are freed, and what survives was taken first: the allocator gives the rest back."""

import ctypes

import numpy as np
from tlmem.scenarios.harness.switch import long_enough

OUTCOME = "stable"


def main() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = libc.memset.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    survivors = [libc.memset(libc.malloc(3_500), 1, 3_500) for _ in range(1_000)]
    blocks = np.empty(24_000, np.uintp)  # so that Python needs no memory of its own above them
    for at in range(len(blocks)):
        blocks[at] = libc.memset(libc.malloc(3_500), 1, 3_500)
    for block in blocks:
        libc.free(int(block))
    total = 0.0
    for step in long_enough(4_000):
        total += float(np.sqrt(np.arange(20_000.0) + step).sum())
    print(f"{total:.6e} {len(survivors)}")


if __name__ == "__main__":
    main()
