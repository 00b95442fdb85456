"""A C library's plan per transform length+1: malloc'ed work space is never freed."""
import ctypes
import ctypes.util
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
libc = ctypes.CDLL(ctypes.util.find_library("c"))
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]


class Plan:
    def __init__(self, n):
        self.n = n
        self.work = libc.malloc(n * 16)
        libc.memset(self.work, 1, n * 16)

    def execute(self, x):
        return np.fft.rfft(x, self.n)


def analyse(x):
    plan = Plan(len(x) * 2)
    spec = np.abs(plan.execute(x))
    return float(spec.max())


rng = np.random.default_rng(1)
stop = time.monotonic() + T
n, peak = 0, 0.0
while time.monotonic() < stop:
    signal = rng.normal(size=2048 + 256 * (n % 4))
    peak = max(peak, analyse(signal))
    n += 1
    time.sleep(0.004)
print("signals", n, "peak %.2f" % peak)
