import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Sheet:
    def __init__(self):
        self.cells = np.zeros((300, 40))
        self.history = []

    def edit(self, r0, r1, f):
        before = self.cells[r0:r1].copy()
        self.cells[r0:r1] = f(before)
        self.history.append((r0, r1, before))

    def undo(self):
        r0, r1, before = self.history.pop()
        self.cells[r0:r1] = before


s, g = Sheet(), np.random.default_rng(1)
for i in range(int(T * 130)):
    a = int(g.integers(0, 290))
    s.edit(a, min(300, a + 1 + int(g.exponential(8))), lambda m: m * 0.9 + 1)
    if i % 6 == 5:
        s.undo()
    time.sleep(0.0068)
print(round(float(s.cells.sum()), 4))
