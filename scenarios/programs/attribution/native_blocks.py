"""A C library allocates blocks of many sizes and keeps them; NumPy and Python stay flat."""

import ctypes

import numpy as np


def main() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    total = 0.0
    for step in range(3000):
        size = 300_000 if step % 20 == 0 else 8_000 + step
        libc.memset(libc.malloc(size), step % 256, size)
        total += float(np.sqrt(np.arange(60_000.0)).sum())
    print(f"{total:.6e}")


if __name__ == "__main__":
    main()
