import ctypes
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]


def make_context(size):
    p = libc.malloc(size)
    libc.memset(p, 1, size)
    return p


def process(data):
    ctx = make_context(60_000)
    return float(np.sqrt(data).sum()) + (ctx is None)


s = 0.0
for i in range(int(T * 140)):
    s += process(np.full(2000, i % 9))
    time.sleep(0.0065)
print(round(s, 3))
