import collections
import time
import numpy as np

ring = collections.deque(maxlen=60)
marked = []


def frame(i):
    return np.full((250, 500), i, float)


t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 4.5:
    f = frame(i)
    ring.append(f)
    if i % 12 == 0:
        marked.append(f)
    i += 1
    time.sleep(0.005)
print(len(ring))
