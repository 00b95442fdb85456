import collections
import ctypes
import sys
import time

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
libc = ctypes.CDLL("libc.so.6")
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]


class Handle:
    def __init__(self, n):
        self.p = libc.malloc(n)
        libc.memset(self.p, 7, n)

    def close(self):
        libc.free(self.p)


live = collections.deque()
for i in range(int(T * 200)):
    live.append(Handle(20000 + (i * 7919) % 60000))
    if len(live) > 40:
        live.popleft().close()
    time.sleep(0.0044)
print(len(live))
