import time
import numpy as np


class Solver:
    debug = False

    def __init__(self):
        self.x = np.zeros(250_000)
        self.trail = []

    def step(self, k):
        r = np.sin(self.x + k)
        self.x -= 0.1 * r
        if self.debug:
            self.trail.append(r)


s = Solver()
for k in range(120):
    if k == 40:
        s.debug = True
    s.step(k)
    time.sleep(0.03)
print(len(s.trail))
