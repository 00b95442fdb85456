import sys
import time
import random
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Walker:
    __slots__ = ("path", "age")

    def __init__(self, n):
        self.path = np.zeros((n, 2))
        self.age = 0


r = random.Random(21)
pop = [Walker(40) for _ in range(120)]
for t in range(int(T * 180)):
    target = 120
    drift = (target - len(pop)) * 0.06
    k = int(round(r.gauss(drift, 4)))
    if k > 0:
        pop += [Walker(r.randrange(20, 60)) for _ in range(k)]
    for _ in range(-k):
        pop.pop(r.randrange(len(pop)))
    for _ in range(3):
        pop[r.randrange(len(pop))] = Walker(r.randrange(20, 60))
    time.sleep(0.005)
print(len(pop) > 0, t)
