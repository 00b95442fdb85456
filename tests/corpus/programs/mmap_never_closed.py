import ctypes
import time
import numpy as np

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]

early = [np.arange(50_000) * k for k in range(40)]
print(sum(int(e[1]) for e in early))
del early
t0 = time.monotonic()
while time.monotonic() - t0 < 3.6:
    p = libc.mmap(None, 1 << 20, 3, 0x22, -1, 0)
    ctypes.memset(p, 5, 1 << 20)
    time.sleep(0.02)
