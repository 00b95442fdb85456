import ctypes
import time
import numpy as np

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]


def c_array(n):
    p = libc.malloc(8 * n)
    return np.ctypeslib.as_array(ctypes.cast(p, ctypes.POINTER(ctypes.c_double)), (n,))


end = time.monotonic() + 3.4
s = 0.0
while time.monotonic() < end:
    a = c_array(25_000)
    a[:] = 1.0
    s += a.sum()
    time.sleep(0.005)
print(s > 0)
