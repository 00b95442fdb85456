import time
import numpy as np


class Node:
    __slots__ = ("axis", "cut", "left", "right", "points")

    def __init__(self, pts, depth=0):
        self.axis = depth % 3
        self.points = None
        if len(pts) <= 64:
            self.points = pts.copy()
            time.sleep(0.003)
            return
        self.cut = float(np.median(pts[:, self.axis]))
        side = pts[:, self.axis] < self.cut
        self.left = Node(pts[side], depth + 1)
        self.right = Node(pts[~side], depth + 1)


def find(node, p):
    while node.points is None:
        node = node.left if p[node.axis] < node.cut else node.right
    return np.abs(node.points - p).sum(axis=1).min()


rng = np.random.default_rng(1)
tree = Node(rng.random((30_000, 3)))
t0 = time.monotonic()
d = 0.0
while time.monotonic() - t0 < 3.2:
    d += find(tree, rng.random(3))
    time.sleep(0.0005)
print(d > 0)
