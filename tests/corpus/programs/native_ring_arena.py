"""Frames live in C memory (malloc through ctypes), oldest is freed when 30 are held."""
import ctypes
import ctypes.util
import sys
import time
from collections import deque

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
libc = ctypes.CDLL(ctypes.util.find_library("c"))
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]


class Frame:
    def __init__(self, n):
        self.n = n
        self.ptr = libc.malloc(8 * n)
        raw = (ctypes.c_double * n).from_address(self.ptr)
        self.view = np.frombuffer(raw, dtype=np.float64)

    def release(self):
        self.view = None
        libc.free(self.ptr)
        self.ptr = None


ring = deque()
stop = time.monotonic() + T
k, level = 0, 0.0
while time.monotonic() < stop:
    f = Frame(20_000 + 4_000 * (k * 5 % 8))
    f.view[:] = k
    ring.append(f)
    if len(ring) > 30:
        old = ring.popleft()
        level = 0.9 * level + 0.1 * float(np.mean(old.view))
        old.release()
    k += 1
    time.sleep(0.006)
print("frames", k, "held", len(ring), "level %.1f" % level)
