"""GUI panels subscribe to a bus when opened; closing forgets to unsubscribe."""
import sys
import time
from collections import defaultdict

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0


class Bus:
    def __init__(self):
        self.handlers = defaultdict(list)

    def on(self, topic, fn):
        self.handlers[topic].append(fn)

    def emit(self, topic, *args):
        for fn in self.handlers[topic]:
            fn(*args)


class Panel:
    def __init__(self, bus, w, h):
        self.visible = True
        self.surface = np.zeros((h, w, 4), dtype=np.uint8)
        bus.on("theme", self.recolour)

    def recolour(self, value):
        if self.visible:
            self.surface[..., 0] = value

    def paint(self):
        shade = self.surface.astype(np.float32) * 0.5
        return float(shade[0, 0, 0])

    def close(self):
        self.visible = False


bus = Bus()
open_panels = []
stop = time.monotonic() + T
n = 0
while time.monotonic() < stop:
    if n % 3 == 0:
        open_panels.append(Panel(bus, 60 + n % 50, 40))
    if len(open_panels) > 12:
        open_panels.pop(n % 7).close()
    for p in open_panels:
        p.paint()
    if n % 50 == 0:
        bus.emit("theme", n % 255)
    n += 1
    time.sleep(0.005)
print("frames", n, "open", len(open_panels))
