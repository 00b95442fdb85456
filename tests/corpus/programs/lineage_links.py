import random
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Agent:
    def __init__(self, parent, r):
        self.parent = parent
        self.children = []
        if parent:
            parent.children.append(self)
        base = parent.genes if parent else np.zeros(256)
        self.genes = base + np.array([r.gauss(0, 0.1) for _ in range(16)]).repeat(16)


r = random.Random(17)
pop = [Agent(None, r) for _ in range(60)]
for t in range(int(T * 140)):
    pop.sort(key=lambda a: float(a.genes.sum()), reverse=t % 2 == 0)
    for _ in range(2):
        pop.pop()
        pop.append(Agent(pop[r.randrange(20)], r))
    time.sleep(0.0058)
print(len(pop))
