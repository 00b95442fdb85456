import collections
import ctypes
import time
import numpy as np

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


class Matrix:
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


latest = collections.deque(maxlen=40)
t0 = time.monotonic()
while time.monotonic() - t0 < 4.0:
    latest.append(np.asarray(Matrix(4_000)))
    time.sleep(0.01)
