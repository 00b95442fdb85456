import time
import numpy as np


class Bus:
    def __init__(self):
        self.listeners = []

    def emit(self, x):
        for f in self.listeners[-20:]:
            f(x)


BUS = Bus()


class View:
    def __init__(self, i):
        self.canvas = np.zeros((60, 80))
        self.i = i
        BUS.listeners.append(self.on_event)

    def on_event(self, x):
        self.canvas[0, 0] = x


t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.2:
    v = View(i)
    BUS.emit(i)
    del v
    i += 1
    time.sleep(0.003)
