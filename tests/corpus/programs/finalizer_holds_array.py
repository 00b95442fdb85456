import sys
import time
import weakref
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
closed = []


class Buffer:
    def __init__(self, n):
        self.data = np.zeros(n, np.int32)
        weakref.finalize(self, self._close, n)

    def _close(self, n):
        closed.append(n)


t = 0
for i in range(int(T * 130)):
    b = Buffer(900 + i % 11)
    b.data[i % 900] = i
    t += int(b.data.sum())
    time.sleep(0.007)
print(t, len(closed))
