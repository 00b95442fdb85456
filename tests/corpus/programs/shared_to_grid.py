import time
import numpy as np


def to_grid(a, b):
    return np.multiply.outer(a, b)


class Mean:
    def feed(self, a):
        self.last = to_grid(a, a).mean()


class Latest:
    def feed(self, a):
        self.grid = to_grid(a, a[::-1])


class Recorder:
    def __init__(self):
        self.grids = []

    def feed(self, a):
        self.grids.append(to_grid(a, a + 1))


sinks = [Mean(), Latest(), Recorder()]
end = time.monotonic() + 4.4
i = 0
while time.monotonic() < end:
    sig = np.arange(300.0) + i
    sinks[0].feed(sig)
    sinks[1].feed(sig)
    if i % 3 == 0:
        sinks[2].feed(sig)
    i += 1
    time.sleep(0.01)
