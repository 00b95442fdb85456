# genetic algorithm with variable genome length (bloat), parsimony cap, elite + hall of fame of 10
import time, random
import numpy as np
rng = np.random.default_rng(4); random.seed(4)
POP, CAP = 120, 9000
class Ind:
    __slots__ = ("g", "fit", "parents")
    def __init__(self, g, parents=()):
        self.g = g; self.fit = None; self.parents = parents
def fitness(ind):
    g = ind.g
    return float(np.sin(g).sum() / np.sqrt(len(g)) + 0.001 * len(g))
pop = [Ind(rng.standard_normal(500)) for _ in range(POP)]
fame = []
t0 = time.monotonic()
for gen in range(260):
    for p in pop:
        if p.fit is None: p.fit = fitness(p)
    pop.sort(key=lambda p: -p.fit)
    fame = sorted(fame + pop[:3], key=lambda p: -p.fit)[:10]
    nxt = pop[:10]
    while len(nxt) < POP:
        a, b = random.sample(pop[:40], 2)
        ca, cb = random.randrange(len(a.g)), random.randrange(len(b.g))
        g = np.concatenate([a.g[:ca], b.g[cb:]])
        g = np.concatenate([g, rng.standard_normal(random.randrange(1, 120))])[:CAP]
        g += rng.standard_normal(len(g)) * 0.01
        nxt.append(Ind(g, (a.fit, b.fit)))
    pop = nxt
    time.sleep(max(0, t0 + gen * 0.03 - time.monotonic()))
print(fame[0].fit, np.mean([len(p.g) for p in pop]))
