"""Sensor recorder: one array, made longer by 2,048 samples whenever it is full; never cut."""
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
CHUNK = 2048


class Recorder:
    def __init__(self):
        self.samples = np.zeros(CHUNK)
        self.used = 0

    def write(self, block):
        need = self.used + len(block)
        if need > len(self.samples):
            longer = np.zeros(len(self.samples) + CHUNK)
            longer[:self.used] = self.samples[:self.used]
            self.samples = longer
        self.samples[self.used:need] = block
        self.used = need

    def level(self):
        tail = self.samples[max(0, self.used - 1000):self.used]
        return float(np.sqrt(np.mean(tail * tail)))


rec = Recorder()
phase = 0.0
levels = []
stop = time.perf_counter() + T
while time.perf_counter() < stop:
    t = phase + np.arange(400) / 8000.0
    rec.write(np.sin(2 * np.pi * 440 * t))
    phase = float(t[-1])
    levels = (levels + [rec.level()])[-200:]
    time.sleep(0.003)
print("samples", rec.used, "level %.3f" % levels[-1])
