"""A population that follows the seasons: births in summer, deaths in winter."""
import math
import random
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(11)
gen = np.random.default_rng(11)
STEPS = int(T * 160)
YEAR = max(10, STEPS // 7)


class Rabbit:
    __slots__ = ("genes", "age")

    def __init__(self, mother=None):
        if mother is None:
            self.genes = gen.normal(size=250)
        else:
            self.genes = mother.genes + gen.normal(scale=0.01, size=250)
        self.age = 0


herd = [Rabbit() for _ in range(60)]
for step in range(STEPS):
    grass = 160 + 110 * math.sin(2 * math.pi * step / YEAR)
    for r in herd:
        r.age += 1
    pressure = len(herd) / grass
    if pressure < 1:
        births = 1 + int((grass - len(herd)) * 0.3)
        herd.extend(Rabbit(rng.choice(herd)) for _ in range(births))
    else:
        deaths = 1 + int((len(herd) - grass) * 0.3)
        herd.sort(key=lambda r: r.age * rng.random())
        del herd[-deaths:]
    if len(herd) > 20 and rng.random() < 0.5:
        herd.pop(rng.randrange(len(herd)))
        herd.append(Rabbit(rng.choice(herd)))
    time.sleep(0.005)
print("herd", len(herd), "mean gene %.3f" % np.mean([r.genes.mean() for r in herd]))
