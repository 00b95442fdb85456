import time
import numpy as np

readers = []


def reader(i):
    chunk = np.random.default_rng(i).random(12_000)
    for k in range(0, chunk.size, 100):
        yield chunk[k]


t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.2:
    g = reader(i)
    next(g)
    readers.append(g)
    i += 1
    time.sleep(0.004)
