"""Track moving vehicles with a k-d tree plus an overflow list of fresh positions, rebuilding the tree when it is stale."""
import time

import numpy as np
from scipy.spatial import cKDTree

LIFETIME = 4500


class Index:
    def __init__(self):
        self.points = np.empty((0, 3))
        self.tree = None
        self.fresh = []
        self.fresh_count = 0
        self.rebuilds = 0

    def insert(self, block):
        self.fresh.append(block)
        self.fresh_count += len(block)

    def rebuild(self, now):
        self.points = np.concatenate([self.points] + self.fresh)
        self.points = self.points[self.points[:, 2] > now - LIFETIME]
        self.fresh = []
        self.fresh_count = 0
        self.tree = cKDTree(self.points[:, :2])
        self.rebuilds += 1

    def near(self, xy, radius):
        found = len(self.tree.query_ball_point(xy, radius)) if self.tree is not None else 0
        for block in self.fresh:
            found += int((np.hypot(block[:, 0] - xy[0], block[:, 1] - xy[1]) < radius).sum())
        return found


def main():
    rng = np.random.default_rng(14)
    index = Index()
    now = 0
    matches = 0
    for step in range(330):
        block = np.empty((200, 3))
        block[:, :2] = rng.random((200, 2)) * 100
        block[:, 2] = now
        now += 40
        index.insert(block)
        if index.fresh_count > max(3000, len(index.points) * 0.3):
            index.rebuild(now)
        matches += index.near(rng.random(2) * 100, 4.0)
        time.sleep(0.013)
    print("rebuilds", index.rebuilds, "points", len(index.points), "matches", matches)


if __name__ == "__main__":
    main()
