"""Native blocks are freed around survivors: the C allocator keeps what lies between them."""

import ctypes

import numpy as np

OUTCOME = "retained"


def main() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = libc.memset.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    blocks = [libc.memset(libc.malloc(3_500), 1, 3_500) for _ in range(25_000)]
    for number, block in enumerate(blocks):
        if number % 100:  # every 100th survives, and pins the pages around it
            libc.free(block)
    total = 0.0
    for step in range(32_000):
        total += float(np.sqrt(np.arange(20_000.0) + step).sum())
    print(f"{total:.6e} {len(blocks[::100])}")


if __name__ == "__main__":
    main()
