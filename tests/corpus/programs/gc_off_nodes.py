import gc
import time
import numpy as np

gc.disable()


class Node:
    def __init__(self, parent=None):
        self.parent = parent
        self.kids = []


t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.0:
    root = Node()
    root.kids.append(Node(root))
    root.kids[0].data = np.arange(7_500.0) + i
    i += 1
    time.sleep(0.004)
print(i > 0)
