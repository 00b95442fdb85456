"""Adaptive mesh: patches are refined near a shock that runs to and fro, coarsened behind it."""
import math
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
STEPS = int(T * 120)
CYCLE = max(12, STEPS // 6)
BASE = 32


class Patch:
    def __init__(self, lo, hi, level, cells):
        self.lo, self.hi, self.level = lo, hi, level
        self.u = np.interp(np.linspace(lo, hi, 64 * 2 ** level), *cells)

    def near(self, x, width):
        return self.lo - width < x < self.hi + width


def adapt(patches, x, width):
    out = []
    for p in patches:
        want = 4 if p.near(x, width / 4) else 2 if p.near(x, width) else 0
        if want != p.level:
            grid = np.linspace(p.lo, p.hi, len(p.u))
            p = Patch(p.lo, p.hi, want, (grid, p.u))
        out.append(p)
    return out


xs = np.linspace(0, 1, 64)
patches = [Patch(i / BASE, (i + 1) / BASE, 0, (xs, np.sin(9 * xs))) for i in range(BASE)]
for step in range(STEPS):
    phase = 2 * math.pi * step / CYCLE
    x = 0.5 + 0.45 * math.sin(phase)
    patches = adapt(patches, x, 0.05 + 0.15 * (1 + math.cos(phase / 2)))
    for p in patches:
        p.u[1:-1] += 0.1 * (p.u[2:] - 2 * p.u[1:-1] + p.u[:-2])
    time.sleep(0.006)
print("cells", sum(len(p.u) for p in patches), "mean %.4f" % np.mean([p.u.mean() for p in patches]))
