"""Hand NumPy audio chunks to a C-style codec interface through ctypes buffers."""
import ctypes
import time

import numpy as np

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
rng = np.random.default_rng(66)


def upload(chunk):
    p = libc.malloc(chunk.nbytes)
    ctypes.memmove(p, chunk.ctypes.data, chunk.nbytes)
    return p


def energy(p, n):
    view = (ctypes.c_int16 * n).from_address(p)
    return sum(abs(v) for v in view[:: n // 64])


def encode(chunk):
    p = upload(chunk)
    level = energy(p, chunk.size)
    if level < 64 * 2480:
        return 0
    libc.free(p)
    return level


def main():
    total = silent = 0
    for tick in range(160):
        for _ in range(12):
            chunk = rng.integers(-5000, 5000, size=10000, dtype=np.int16)
            level = encode(chunk)
            silent += level == 0
            total += level
        time.sleep(0.043)
    print(total, silent)


main()
