"""Simulate plants, rabbits and foxes as dataclass objects being born, eaten and dying of age."""
import random
import time
from dataclasses import dataclass, field

import numpy as np

rng = random.Random(6)
nprng = np.random.default_rng(6)
SIZE = 60


@dataclass
class Rabbit:
    x: int
    y: int
    energy: float = 5.0
    age: int = 0
    genome: str = ""
    diary: list = field(default_factory=list)


def spawn(parent=None):
    if parent is None:
        return Rabbit(rng.randrange(SIZE), rng.randrange(SIZE), genome="%064x" % rng.getrandbits(256))
    g = parent.genome
    k = rng.randrange(len(g))
    return Rabbit(parent.x, parent.y, 3.0, 0, g[:k] + rng.choice("0123456789abcdef") + g[k + 1:])


def main():
    grass = np.full((SIZE, SIZE), 3.0)
    rabbits = [spawn() for _ in range(900)]
    births = deaths = 0
    sizes = []
    for tick in range(150):
        np.minimum(grass + 0.35, 3.0, out=grass)
        moves = nprng.integers(-1, 2, size=(len(rabbits), 2)).tolist()
        alive = []
        for r, (dx, dy) in zip(rabbits, moves):
            r.x, r.y = (r.x + dx) % SIZE, (r.y + dy) % SIZE
            bite = min(1.2, float(grass[r.x, r.y]))
            grass[r.x, r.y] -= bite
            r.energy += bite - 0.5
            r.age += 1
            r.diary.append((tick, r.x, r.y))
            if r.energy <= 0 or r.age > 40:
                deaths += 1
                continue
            alive.append(r)
            if r.energy > 8 and len(alive) < 4000:
                r.energy -= 4
                alive.append(spawn(r))
                births += 1
        rabbits = alive or [spawn() for _ in range(50)]
        sizes.append(len(rabbits))
        time.sleep(0.042)
    print(births, deaths, max(sizes), sizes[-1])


main()
