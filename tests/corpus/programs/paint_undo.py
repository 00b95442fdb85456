"""Edit several bitmap documents one after another with an undo and redo history limited to forty steps."""
import time
from collections import deque

import numpy as np


class Document:
    LIMIT = 40

    def __init__(self, side, seed):
        self.canvas = np.zeros((side, side), dtype=np.float32)
        self.undo_stack = deque(maxlen=self.LIMIT)
        self.redo_stack = []
        self.rng = np.random.default_rng(seed)

    def stroke(self):
        side = self.canvas.shape[0]
        w = int(self.rng.integers(side // 3, side // 2))
        x, y = self.rng.integers(0, side - w, 2)
        box = (slice(x, x + w), slice(y, y + w))
        self.undo_stack.append((box, self.canvas[box].copy()))
        self.redo_stack.clear()
        self.canvas[box] = 0.7 * self.canvas[box] + float(self.rng.random())

    def undo(self):
        if self.undo_stack:
            box, before = self.undo_stack.pop()
            self.redo_stack.append((box, self.canvas[box].copy()))
            self.canvas[box] = before

    def redo(self):
        if self.redo_stack:
            box, after = self.redo_stack.pop()
            self.undo_stack.append((box, self.canvas[box].copy()))
            self.canvas[box] = after


def edit(seed, side, steps):
    doc = Document(side, seed)
    for step in range(steps):
        doc.stroke()
        if step % 17 == 16:
            for _ in range(6):
                doc.undo()
            for _ in range(3):
                doc.redo()
        time.sleep(0.008)
    return float(doc.canvas.sum())


def main():
    for seed, side, steps in [(1, 256, 130), (2, 320, 200), (3, 288, 240)]:
        print("document", seed, "ink", round(edit(seed, side, steps), 2))


if __name__ == "__main__":
    main()
