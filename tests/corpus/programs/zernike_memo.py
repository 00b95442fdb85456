"""Optics: basis functions are memoised by (n, m); there are only 90 of them."""
import random
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(7)
PAIRS = [(n, m) for n in range(16) for m in range(-n, n + 1, 2)][:90]
y, x = np.mgrid[-1:1:72j, -1:1:72j]
RHO, PHI = np.hypot(x, y), np.arctan2(y, x)
_basis = {}


def basis(n, m):
    key = (n, m)
    if key not in _basis:
        radial = RHO ** n * (RHO <= 1)
        angular = np.cos(m * PHI) if m >= 0 else np.sin(-m * PHI)
        _basis[key] = radial * angular
    return _basis[key]


def wavefront(terms):
    out = np.zeros_like(RHO)
    for n, m, c in terms:
        out += c * basis(n, m)
    return out


stop = time.time() + T
rms = []
frames = 0
while time.time() < stop:
    terms = [(*rng.choice(PAIRS), rng.gauss(0, 1)) for _ in range(5)]
    w = wavefront(terms)
    rms = (rms + [float(w.std())])[-100:]
    frames += 1
    time.sleep(0.005)
print("frames", frames, "memo", len(_basis), "rms %.3f" % (sum(rms) / len(rms)))
