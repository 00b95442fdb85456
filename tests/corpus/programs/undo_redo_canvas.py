"""A small paint program: undo and redo stacks, undo capped at 40 steps."""
import random
import sys
import time
from collections import deque

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(4)


class Document:
    def __init__(self, side=128):
        self.pixels = np.zeros((side, side), dtype=np.float32)
        self.undo_stack = deque(maxlen=40)
        self.redo_stack = []

    def stroke(self, x, y, r):
        self.undo_stack.append(self.pixels)
        self.redo_stack.clear()
        fresh = self.pixels.copy()
        fresh[max(0, y - r):y + r, max(0, x - r):x + r] += 0.1
        self.pixels = fresh

    def undo(self):
        if self.undo_stack:
            self.redo_stack.append(self.pixels)
            self.pixels = self.undo_stack.pop()

    def redo(self):
        if self.redo_stack:
            self.undo_stack.append(self.pixels)
            self.pixels = self.redo_stack.pop()


doc = Document()
end = time.perf_counter() + T
strokes = 0
while time.perf_counter() < end:
    p = rng.random()
    if p < 0.05:
        for _ in range(rng.randint(1, 12)):
            doc.undo()
    elif p < 0.09:
        for _ in range(rng.randint(1, 6)):
            doc.redo()
    else:
        doc.stroke(rng.randrange(128), rng.randrange(128), rng.randint(2, 9))
        strokes += 1
    time.sleep(0.004)
print("strokes", strokes, "ink %.1f" % doc.pixels.sum())
