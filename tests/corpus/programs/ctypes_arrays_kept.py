import ctypes
import time
import numpy as np

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


class Matrix:
    """Memory of a library, as its Python objects lend it to NumPy."""

    def __init__(self, count):
        self.address = libc.malloc(8 * count)
        ctypes.memset(self.address, 0, 8 * count)
        self.__array_interface__ = {
            "shape": (count,),
            "typestr": "<f8",
            "data": (self.address, False),
            "version": 3,
        }

    def __del__(self):
        libc.free(self.address)


results = []
t0 = time.monotonic()
while time.monotonic() - t0 < 4.0:
    results.append(np.asarray(Matrix(4_000)))
    np.asarray(Matrix(9_000)).sum()
    time.sleep(0.01)
