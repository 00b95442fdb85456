import gc
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
gc.disable()


class Node:
    def __init__(self, parent=None):
        self.parent = parent
        self.children = []
        self.value = np.zeros(120)


def build(depth, parent=None):
    n = Node(parent)
    if depth:
        n.children = [build(depth - 1, n), build(depth - 1, n)]
    return n


def total(n):
    return n.value.sum() + sum(total(c) for c in n.children)


s = 0
for k in range(int(T * 45)):
    t = build(3)
    t.children[0].value += k
    s += total(t)
    time.sleep(0.019)
print(s)
