import ctypes
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
libc = ctypes.CDLL(None)
libc.calloc.restype = ctypes.c_void_p
libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


class NativeVec:
    def __init__(self, n):
        self.n = n
        self.ptr = libc.calloc(n, 8)
        self.view = (ctypes.c_double * n).from_address(self.ptr)

    def fill(self, v):
        for i in range(0, self.n, 64):
            self.view[i] = v

    def close(self):
        libc.free(self.ptr)
        self.ptr = None


tot = 0.0
for i in range(int(T * 180)):
    v = NativeVec(6000)
    v.fill(i % 5)
    tot += v.view[64] + float(np.ones(300).sum())
    if i % 3:
        v.close()
    time.sleep(0.005)
print(tot)
