"""Share meshes between game scenes through a weak-value cache, while scene graphs with parent links come and go."""
import time
import weakref

import numpy as np


class Mesh:
    def __init__(self, name, size):
        rng = np.random.default_rng(size)
        self.name = name
        self.vertices = rng.random((size, 3))
        self.normals = self.vertices / np.linalg.norm(self.vertices, axis=1, keepdims=True)


class Node:
    def __init__(self, parent, mesh):
        self.parent = parent
        self.mesh = mesh
        self.children = []
        self.transform = np.eye(4)
        if parent is not None:
            parent.children.append(self)


class AssetStore:
    def __init__(self):
        self.live = weakref.WeakValueDictionary()
        self.loads = 0

    def mesh(self, name):
        found = self.live.get(name)
        if found is None:
            self.loads += 1
            found = Mesh(name, 400 + (sum(name.encode()) * 37) % 2500)
            self.live[name] = found
        return found


def build_scene(store, level, rng):
    root = Node(None, store.mesh("sky"))
    nodes = [root]
    for i in range(90):
        parent = nodes[int(rng.integers(0, len(nodes)))]
        name = f"lvl{level}-prop{int(rng.integers(0, 50))}" if i % 3 else f"common{i % 9}"
        nodes.append(Node(parent, store.mesh(name)))
        time.sleep(0.002)
    return root


def bounds(node, matrix):
    matrix = matrix @ node.transform
    best = float((node.mesh.vertices @ matrix[:3, :3]).max())
    for child in node.children:
        best = max(best, bounds(child, matrix))
    return best


def dispose(node):
    for child in node.children:
        dispose(child)
        child.parent = None
    node.children.clear()


def main():
    rng = np.random.default_rng(1)
    store = AssetStore()
    current = None
    acc = 0.0
    for level in range(18):
        incoming = build_scene(store, level, rng)
        if current is not None:
            dispose(current)
        current = incoming
        for frame in range(4):
            current.transform[0, 3] = frame
            acc += bounds(current, np.eye(4))
            time.sleep(0.012)
    print("loads", store.loads, "live", len(store.live), "acc", round(acc, 3))


if __name__ == "__main__":
    main()
