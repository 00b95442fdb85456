import time
import numpy as np


class Part:
    def __init__(self, owner):
        self.owner = owner
        self.tags = []
        self.meta = {"a": [1], "b": [2]}


class Whole:
    def __init__(self, i):
        self.data = np.full(2_000, i, float)
        self.parts = [Part(self) for _ in range(4)]


t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.2:
    Whole(i)
    i += 1
    time.sleep(0.001)
print(i > 0)
