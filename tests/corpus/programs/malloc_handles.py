import ctypes
import time
import numpy as np

libc = ctypes.CDLL(None)
libc.calloc.restype = ctypes.c_void_p
libc.calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]


class Handle:
    def __init__(self, n):
        self.ptr = libc.calloc(n, 1)
        ctypes.memset(self.ptr, 7, n)

    def sample(self):
        buf = (ctypes.c_ubyte * 4096).from_address(self.ptr)
        return np.frombuffer(buf, np.uint8).mean()

    def close(self):
        self.ptr = None


t0 = time.monotonic()
s = 0.0
while time.monotonic() - t0 < 4.0:
    h = Handle(2_000_000)
    s += h.sample()
    h.close()
    time.sleep(0.05)
print(s > 0)
