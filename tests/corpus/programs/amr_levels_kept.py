import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Patch:
    def __init__(self, level, at):
        self.level, self.at = level, at
        self.u = np.full((12 + 4 * level, 12 + 4 * level), at, float)


class Mesh:
    def __init__(self):
        self.active = {}
        self.by_level = {0: [], 1: [], 2: []}

    def refine(self, at, level):
        p = Patch(level, at)
        self.active[(level, at)] = p
        self.by_level[level].append(p)

    def coarsen(self, key):
        del self.active[key]

    def smooth(self):
        for p in self.active.values():
            p.u[1:-1, 1:-1] = (p.u[2:, 1:-1] + p.u[:-2, 1:-1]) / 2


m, g = Mesh(), np.random.default_rng(0)
for t in range(int(T * 120)):
    front = int(20 + 15 * np.sin(t / 40))
    for key in [k for k in m.active if abs(k[1] - front) > 6]:
        m.coarsen(key)
    for at in range(front - 3, front + 4):
        lv = int(g.integers(0, 3))
        if (lv, at) not in m.active:
            m.refine(at, lv)
    m.smooth()
    time.sleep(0.0072)
print(len(m.active))
