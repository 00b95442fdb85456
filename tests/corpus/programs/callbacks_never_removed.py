import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Bus:
    def __init__(self):
        self.subs = {}

    def on(self, topic, fn):
        self.subs.setdefault(topic, []).append(fn)

    def emit(self, topic, *a):
        for fn in self.subs.get(topic, ())[-20:]:
            fn(*a)


class Plot:
    def __init__(self, bus, n):
        self.data = np.zeros((2, 300 + n % 50))
        self.closed = False
        bus.on("tick", self.update)

    def update(self, t):
        if not self.closed:
            self.data[1, t % 300] = t

    def close(self):
        self.closed = True


bus = Bus()
for t in range(int(T * 160)):
    p = Plot(bus, t)
    bus.emit("tick", t)
    p.close()
    time.sleep(0.0058)
print(t)
