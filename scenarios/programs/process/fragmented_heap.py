"""Native blocks are freed around survivors: the C allocator keeps what lies between them.

Fixed: Native blocks are freed, and what survives was taken first: the allocator gives the rest
back.
"""

import ctypes

import numpy as np
from tlmem.scenarios.harness.switch import FIXED, repeat

OUTCOME = "retained"
BLOCKS, SURVIVORS = 25_000, 250

libc = ctypes.CDLL(None)
libc.malloc.restype = libc.memset.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


def main() -> None:
    blocks = np.empty(BLOCKS, np.uintp)  # so that Python needs no memory of its own above them
    for at in range(BLOCKS):
        blocks[at] = libc.memset(libc.malloc(3_500), 1, 3_500)
    for at in range(BLOCKS):
        survives = at < SURVIVORS if FIXED else at % (BLOCKS // SURVIVORS) == 0
        if not survives:  # each that does pins the pages around it
            libc.free(int(blocks[at]))
    total = 0.0
    for step in repeat(32_000, fixed=4_000):
        total += float(np.sqrt(np.arange(20_000.0) + step).sum())
    print(f"{total:.6e} {SURVIVORS}")


if __name__ == "__main__":
    main()
