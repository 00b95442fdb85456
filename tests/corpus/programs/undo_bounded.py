import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Canvas:
    def __init__(self, n=400):
        self.px = np.zeros((n, n), np.uint8)
        self.undo, self.redo = [], []

    def stroke(self, y, x, h, w, v):
        self.undo.append((y, x, self.px[y:y + h, x:x + w].copy()))
        self.redo.clear()
        if len(self.undo) > 50:
            self.undo.pop(0)
        self.px[y:y + h, x:x + w] = v

    def undo_one(self):
        if self.undo:
            y, x, old = self.undo.pop()
            h, w = old.shape
            self.redo.append((y, x, self.px[y:y + h, x:x + w].copy()))
            self.px[y:y + h, x:x + w] = old


c, g = Canvas(), np.random.default_rng(3)
for i in range(int(T * 180)):
    y, x, h, w = (int(v) for v in g.integers(5, 190, 4))
    c.stroke(y, x, h, w, i % 255)
    if i % 9 == 8:
        for _ in range(int(g.integers(1, 6))):
            c.undo_one()
    time.sleep(0.0052)
print(int(c.px.sum()) > 0, len(c.undo) <= 50)
