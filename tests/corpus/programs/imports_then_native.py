import sys, tempfile, ctypes, time
folder = tempfile.TemporaryDirectory()
sys.pycache_prefix = folder.name; sys.dont_write_bytecode = True
import scipy.stats
import numpy as np
libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p; libc.malloc.argtypes = [ctypes.c_size_t]
def call():
    p = libc.malloc(20000); ctypes.memset(p, 1, 20000)
end = time.time() + 3
while time.time() < end:
    call(); time.sleep(0.003); np.ones(100).sum()
