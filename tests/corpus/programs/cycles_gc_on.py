import gc
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
gc.set_threshold(400, 5, 5)


class Particle:
    def __init__(self, pos):
        self.pos = pos
        self.neighbours = []


def cloud(rng, n):
    ps = [Particle(rng.random(60)) for _ in range(n)]
    for a in ps:
        for b in ps[:4]:
            a.neighbours.append(b)
            b.neighbours.append(a)
    return ps


rng = np.random.default_rng(2)
e = 0.0
for _ in range(int(T * 110)):
    ps = cloud(rng, 12)
    e += sum(float(p.pos[0]) for p in ps)
    time.sleep(0.008)
print(round(e, 4))
