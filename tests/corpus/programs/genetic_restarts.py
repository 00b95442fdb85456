"""Search short tours with a genetic algorithm that restarts with alternating small and doubled populations."""
import time

import numpy as np

CITIES = 160


def length(tours, dist):
    return dist[tours, np.roll(tours, -1, axis=1)].sum(axis=1)


def mutate(tour, rng):
    a, b = np.sort(rng.integers(0, CITIES, 2))
    child = tour.copy()
    child[a:b + 1] = child[a:b + 1][::-1]
    return child


class Individual:
    def __init__(self, tour, cost):
        self.tour = tour
        self.cost = cost
        self.trail = np.full(256, cost)


def run(size, generations, dist, rng, hall):
    pop = []
    for _ in range(size):
        tour = rng.permutation(CITIES)
        pop.append(Individual(tour, float(length(tour[None], dist)[0])))
    for _ in range(generations):
        kids = []
        for parent in pop[: size // 2]:
            tour = mutate(parent.tour, rng)
            kids.append(Individual(tour, float(length(tour[None], dist)[0])))
        pop = sorted(pop + kids, key=lambda p: p.cost)[:size]
        time.sleep(0.018)
    hall.append(pop[0])
    hall.sort(key=lambda p: p.cost)
    del hall[5:]


def main():
    rng = np.random.default_rng(19)
    xy = rng.random((CITIES, 2))
    dist = np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))
    hall = []
    for size, generations in [(60, 40), (240, 20), (60, 40), (480, 25), (60, 40), (480, 20)]:
        run(size, generations, dist, rng, hall)
    print("best", [round(p.cost, 3) for p in hall])


if __name__ == "__main__":
    main()
