import time
import weakref
import numpy as np

side = {}


class Job:
    pass


def start(i):
    j = Job()
    side[i] = np.zeros(20_000) + i
    weakref.finalize(j, side.pop, i)
    return j


current = []
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 2.9:
    current.append(start(i))
    i += 1
    if len(current) > 30:
        current.pop(0)
    time.sleep(0.0015)
print(len(side))
