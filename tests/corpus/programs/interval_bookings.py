"""Book and cancel meeting rooms with one balanced interval tree per day, dropped at day end."""
import random
import time

rng = random.Random(17)


class Node:
    def __init__(self, lo, hi, data):
        self.lo, self.hi, self.max = lo, hi, hi
        self.data = data
        self.prio = rng.random()
        self.left = self.right = None

    def update(self):
        self.max = self.hi
        for c in (self.left, self.right):
            if c is not None and c.max > self.max:
                self.max = c.max


def split(node, lo):
    if node is None:
        return None, None
    if node.lo < lo:
        a, b = split(node.right, lo)
        node.right = a
        node.update()
        return node, b
    a, b = split(node.left, lo)
    node.left = b
    node.update()
    return a, node


def merge(a, b):
    if a is None or b is None:
        return a or b
    if a.prio > b.prio:
        a.right = merge(a.right, b)
        a.update()
        return a
    b.left = merge(a, b.left)
    b.update()
    return b


def insert(root, n):
    a, b = split(root, n.lo)
    return merge(merge(a, n), b)


def remove(root, lo):
    a, b = split(root, lo)
    _, c = split(b, lo + 1)
    return merge(a, c)


def overlaps(node, lo, hi, out):
    if node is None or node.max < lo or len(out) > 50:
        return out
    overlaps(node.left, lo, hi, out)
    if node.lo <= hi and node.hi >= lo:
        out.append(node.data["title"])
    if node.lo <= hi:
        overlaps(node.right, lo, hi, out)
    return out


def main():
    clashes = 0
    for day in range(5):
        root = None
        starts = []
        for slot in range(32):
            for _ in range(110):
                lo = rng.randrange(10**7)
                data = {"title": f"meeting {lo}", "people": [f"p{rng.randrange(10**5)}" for _ in range(8)]}
                clashes += len(overlaps(root, lo, lo + 500, []))
                root = insert(root, Node(lo, lo + rng.randrange(100, 2000), data))
                starts.append(lo)
            for _ in range(15):
                root = remove(root, starts.pop(rng.randrange(len(starts))))
            time.sleep(0.042)
    print("clashes", clashes)


main()
