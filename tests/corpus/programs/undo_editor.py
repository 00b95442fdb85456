"""Simulate a text editor whose undo and redo stacks have a fixed depth."""
import random
import time
from collections import deque

rng = random.Random(77)
WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()


def sentence():
    return " ".join(rng.choice(WORDS) for _ in range(12))


class Editor:
    def __init__(self):
        self.lines = [sentence() for _ in range(3500)]
        self.undo = deque(maxlen=250)
        self.redo = deque(maxlen=250)

    def checkpoint(self):
        self.undo.append(tuple(self.lines))
        self.redo.clear()

    def edit(self):
        self.checkpoint()
        for _ in range(30):
            i = rng.randrange(len(self.lines))
            self.lines[i] = sentence()

    def do_undo(self):
        if self.undo:
            self.redo.append(tuple(self.lines))
            self.lines = list(self.undo.pop())

    def do_redo(self):
        if self.redo:
            self.undo.append(tuple(self.lines))
            self.lines = list(self.redo.pop())


def main():
    ed = Editor()
    for step in range(200):
        for _ in range(4):
            ed.edit()
        if step % 3 == 0:
            ed.do_undo()
            ed.do_undo()
            ed.do_redo()
        time.sleep(0.033)
    print(len(ed.lines), len(ed.undo), sum(map(len, ed.lines)))


main()
