import time
import numpy as np


class Sim:
    def __init__(self):
        self.x = np.zeros((120, 120))
        self.history = []
        self.n = 0

    def step(self):
        lap = np.roll(self.x, 1, 0) + np.roll(self.x, -1, 0) - 2 * self.x
        self.x = self.x + 0.1 * lap + 0.01
        self.n += 1
        if self.n % 16 == 0:
            self.history.append(self.x[::5, ::6].copy())


sim = Sim()
t0 = time.monotonic()
while time.monotonic() - t0 < 5.4:
    sim.step()
    time.sleep(0.002)
print(sim.n > 0)
