"""Evolve symbolic formulas as nested tuples with a constant population and a size limit."""
import random
import time

import numpy as np

rng = random.Random(44)
X = np.linspace(-2, 2, 64)
Y = X ** 3 - 2 * X + 1
OPS = {"+": np.add, "-": np.subtract, "*": np.multiply}


def grow(depth):
    if depth == 0 or rng.random() < 0.2:
        return ("x",) if rng.random() < 0.6 else ("c", round(rng.uniform(-3, 3), 3))
    return (rng.choice("+-*"), grow(depth - 1), grow(depth - 1))


def size(t):
    return 1 if t[0] in "xc" else 1 + size(t[1]) + size(t[2])


def value(t):
    if t[0] == "x":
        return X
    if t[0] == "c":
        return t[1]
    return OPS[t[0]](value(t[1]), value(t[2]))


def loss(t):
    with np.errstate(all="ignore"):
        e = float(np.mean((value(t) - Y) ** 2))
    return e + 0.002 * size(t) if e == e else 1e9


def pick(t):
    while t[0] not in "xc" and rng.random() < 0.7:
        t = t[rng.choice((1, 2))]
    return t


def cross(a, b):
    if a[0] in "xc" or rng.random() < 0.3:
        return pick(b)
    if rng.random() < 0.5:
        return (a[0], cross(a[1], b), a[2])
    return (a[0], a[1], cross(a[2], b))


def main():
    pop = [grow(5) for _ in range(220)]
    hall = []
    for gen in range(110):
        scored = sorted(((loss(t), i, t) for i, t in enumerate(pop)), key=lambda s: s[:2])
        hall = sorted(hall + [(s, repr(t)) for s, _, t in scored[:5]])[:20]
        parents = [t for _, _, t in scored[:70]]
        pop = parents[:10]
        while len(pop) < 220:
            child = cross(rng.choice(parents), rng.choice(parents)) if rng.random() < 0.85 else grow(5)
            if size(child) <= 60:
                pop.append(child)
        time.sleep(0.055)
    print(round(hall[0][0], 4), len(hall))


main()
