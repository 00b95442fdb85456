import functools
import time
import numpy as np


class Editor:
    def __init__(self):
        self.img = np.zeros((200, 190))
        self.undo = []

    def edit(self, i):
        old = self.img.copy()
        self.undo.append(functools.partial(self._restore, old))
        self.img[i % 200] += 1.0

    def _restore(self, old):
        self.img[...] = old


ed = Editor()
end = time.monotonic() + 3.9
i = 0
while time.monotonic() < end:
    ed.edit(i)
    i += 1
    time.sleep(0.012)
print(len(ed.undo) > 0)
