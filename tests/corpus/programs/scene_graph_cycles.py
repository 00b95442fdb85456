"""Scenes are trees with parent links; dropped scenes are left to the cycle collector."""
import random
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(9)


class Node:
    def __init__(self, parent=None):
        self.parent = parent
        self.children = []
        self.matrix = np.eye(4)
        self.bounds = None
        if parent is not None:
            parent.children.append(self)


def build(depth, parent=None):
    node = Node(parent)
    if depth == 0:
        node.mesh = np.ones((rng.randint(40, 120), 3))
    else:
        for _ in range(rng.randint(2, 4)):
            build(depth - 1, node)
    return node


def bounds(node):
    points = [bounds(c) for c in node.children]
    if not points:
        points = [node.mesh @ node.matrix[:3, :3]]
    node.bounds = np.array([min(p.min() for p in points), max(p.max() for p in points)])
    return node.bounds


stop = time.perf_counter() + T
scenes = 0
while time.perf_counter() < stop:
    scene = build(4)
    b = bounds(scene)
    scenes += 1
    time.sleep(0.004)
print("scenes", scenes, "bounds", b.tolist())
