import ctypes
import time
import numpy as np

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]


def main():
    end = time.monotonic() + 3.8
    while time.monotonic() < end:
        for _ in range(60):
            libc.memset(libc.malloc(512), 65, 512)
        np.ones(2_000).sum()
        time.sleep(0.002)


main()
