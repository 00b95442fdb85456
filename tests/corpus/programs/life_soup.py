"""Run Conway's game of life with sets on a torus, reseeding the soup every sixty generations."""
import random
import time
from collections import Counter

W = H = 110
rng = random.Random(3)


def soup(density):
    return {
        (x, y) for x in range(W) for y in range(H) if rng.random() < density
    }


def step(cells):
    near = Counter(
        ((x + dx) % W, (y + dy) % H)
        for x, y in cells
        for dx in (-1, 0, 1)
        for dy in (-1, 0, 1)
        if dx or dy
    )
    return {c for c, n in near.items() if n == 3 or (n == 2 and c in cells)}


def main():
    population = []
    cells = set()
    seen = set()
    for gen in range(180):
        if gen % 60 == 0:
            cells = soup(0.15 + 0.05 * (gen // 60))
            seen.clear()
        seen.add(hash(frozenset(cells)))
        cells = step(cells)
        population.append(len(cells))
        time.sleep(0.036)
    print("max", max(population), "last", population[-1], "states", len(seen))


main()
