import time
import numpy as np


def running_mean():
    mean, n = None, 0
    while True:
        x = yield mean
        n += 1
        mean = x.copy() if mean is None else mean + (x - mean) / n


g = running_mean()
next(g)
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 2.9:
    m = g.send(np.sin(np.arange(60_000) + i))
    i += 1
    time.sleep(0.002)
g.close()
print(m.shape)
