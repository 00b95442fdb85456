import ctypes
import threading
import time
import numpy as np

libc = ctypes.CDLL(None)
libc.strdup.restype = ctypes.c_void_p
libc.strdup.argtypes = [ctypes.c_char_p]
text = b"x" * 20_000
stop = threading.Event()


def native():
    while not stop.wait(0.001):
        libc.strdup(text)


th = threading.Thread(target=native)
th.start()
end = time.monotonic() + 3.5
while time.monotonic() < end:
    a = np.linspace(0, 1, 10_000)
    np.sin(a).sum()
    time.sleep(0.003)
stop.set()
th.join()
