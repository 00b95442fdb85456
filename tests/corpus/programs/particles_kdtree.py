"""Rebuild a Python k-d tree over moving NumPy particles every frame and query neighbours."""
import time

import numpy as np

rng = np.random.default_rng(4)


class KDNode:
    __slots__ = ("point", "index", "left", "right")

    def __init__(self, point, index, left, right):
        self.point, self.index, self.left, self.right = point, index, left, right


def build(items, depth=0):
    if not items:
        return None
    axis = depth & 1
    items.sort(key=lambda it: it[0][axis])
    m = len(items) // 2
    return KDNode(items[m][0], items[m][1], build(items[:m], depth + 1), build(items[m + 1:], depth + 1))


def within(node, p, r, out, depth=0):
    if node is None:
        return out
    dx, dy = p[0] - node.point[0], p[1] - node.point[1]
    if dx * dx + dy * dy <= r * r:
        out.append(node.index)
    d = dy if depth & 1 else dx
    if d <= r:
        within(node.left, p, r, out, depth + 1)
    if d >= -r:
        within(node.right, p, r, out, depth + 1)
    return out


def main():
    n = 1600
    pos = rng.random((n, 2))
    vel = rng.normal(0, 0.004, (n, 2))
    contacts = 0
    trail = []
    for frame in range(110):
        pos += vel
        np.mod(pos, 1.0, out=pos)
        pts = [tuple(p) for p in pos.tolist()]
        tree = build(list(zip(pts, range(n))))
        pairs = {i: within(tree, pts[i], 0.02, []) for i in range(0, n, 5)}
        contacts += sum(len(v) - 1 for v in pairs.values())
        trail.append((frame, pairs, pts))
        if len(trail) > 25:
            trail.pop(0)
        time.sleep(0.052)
    print("contacts", contacts)


main()
