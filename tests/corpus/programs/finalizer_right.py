import sys
import time
import weakref
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
stats = {"closed": 0}


def on_close(n):
    stats["closed"] += n > 0


class Segment:
    def __init__(self, n):
        self.data = np.ones(n)
        self.fin = weakref.finalize(self, on_close, n)


held = []
for i in range(int(T * 150)):
    held.append(Segment(500 + i * 37 % 4000))
    if len(held) > 25:
        held.pop(i % 20).fin()
    time.sleep(0.006)
print(stats["closed"])
