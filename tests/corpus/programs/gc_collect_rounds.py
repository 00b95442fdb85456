import gc
import time
import numpy as np


class Node:
    def __init__(self, depth, parent=None):
        self.parent = parent
        self.v = np.ones(3_000)
        self.kids = [Node(depth - 1, self) for _ in range(2)] if depth else []


t0 = time.monotonic()
r = 0
while time.monotonic() - t0 < 3.6:
    Node(6)
    r += 1
    if r % 10 == 0:
        gc.collect()
    time.sleep(0.01)
print(r > 0)
