import time
import numpy as np

graveyard = []


class Tensor:
    def __init__(self, n):
        self.data = np.random.default_rng(n).random(9_000)

    def __del__(self, bury=graveyard.append):
        bury(self)


t0 = time.monotonic()
n = 0
while time.monotonic() - t0 < 3.0:
    t = Tensor(n)
    t.data.sort()
    n += 1
    time.sleep(0.004)
print(len(graveyard) > 0)
