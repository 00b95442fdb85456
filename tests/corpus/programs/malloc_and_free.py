import ctypes
import time
import numpy as np

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


class CBuf:
    def __init__(self, n):
        self.p = libc.malloc(8 * n)
        self.a = np.ctypeslib.as_array(ctypes.cast(self.p, ctypes.POINTER(ctypes.c_double)), (n,))

    def __enter__(self):
        return self.a

    def __exit__(self, *exc):
        self.a = None
        libc.free(self.p)


end = time.monotonic() + 3.0
i = 0
while time.monotonic() < end:
    with CBuf(20_000 + 1_000 * (i % 9)) as a:
        a[:] = i
        a.sum()
        del a
    i += 1
    time.sleep(0.003)
