# MCTS: the tree grows during a move and is cut to the chosen child afterwards; many moves in the run
import time, math, random
import numpy as np
rng = np.random.default_rng(5); random.seed(5)
class Node:
    __slots__ = ("parent", "children", "n", "w", "feat")
    def __init__(self, parent):
        self.parent = parent; self.children = []; self.n = 0; self.w = 0.0
        self.feat = rng.standard_normal(100).astype(np.float32)
def select(node):
    while node.children and len(node.children) == 12:
        ln = math.log(node.n + 1)
        node = max(node.children, key=lambda c: c.w / (c.n + 1) + 1.4 * math.sqrt(ln / (c.n + 1)))
    return node
def simulate(root, weights):
    leaf = select(root)
    child = Node(leaf); leaf.children.append(child)
    v = float(np.tanh(child.feat @ weights))
    node = child
    while node is not None:
        node.n += 1; node.w += v; v = -v; node = node.parent
    return child
weights = rng.standard_normal(100).astype(np.float32) * 0.05
root = Node(None); t0 = time.monotonic(); k = 0
for move in range(4):
    for it in range(200):
        for _ in range(90):
            simulate(root, weights)
        k += 1
        time.sleep(max(0, t0 + k * 0.01 - time.monotonic()))
    root = max(root.children, key=lambda c: c.n)
    root.parent = None
print(root.n)
import gc; print("gc", gc.get_stats()[2]["collections"], sum(type(o) is Node for o in gc.get_objects()))
