import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Recorder:
    def __init__(self):
        self.trace = np.zeros((0, 8))

    def push(self, rows):
        self.trace = np.vstack([self.trace, rows])


rec = Recorder()
state = np.zeros(8)
for step in range(int(T * 130)):
    g = np.random.default_rng(step)
    block = state + np.cumsum(g.standard_normal((100, 8)) * 0.1, axis=0)
    state = block[-1].copy()
    rec.push(block)
    time.sleep(0.0062)
print(rec.trace.shape)
