import time
import numpy as np


def alloc(shape):
    return np.zeros(shape, dtype=np.float32)


def padded(a, p):
    out = alloc((a.shape[0] + 2 * p, a.shape[1] + 2 * p))
    out[p:-p, p:-p] = a
    return out
def bordered(a):
    return padded(a, 3)


saved = []


def on_frame(a, i):
    """callback of the viewer"""
    if i % 2:
        saved.append(bordered(a))


def blur(a):
    b = bordered(a)
    return (b[3:-3, 3:-3] + b[2:-4, 3:-3]) / 2


t0 = time.monotonic()
i = 0
frame = np.ones((64, 64), np.float32)
while time.monotonic() - t0 < 3.6:
    frame = blur(frame)
    on_frame(frame, i)
    i += 1
    time.sleep(0.002)
