import ctypes
import time
import numpy as np

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]

t0 = time.monotonic()
while time.monotonic() - t0 < 1.0:
    np.random.default_rng(0).random(50_000).sort()
    time.sleep(0.003)

while time.monotonic() - t0 < 4.5:
    p = libc.malloc(262_144)
    libc.memset(p, 1, 262_144)
    time.sleep(0.006)
print("end")
