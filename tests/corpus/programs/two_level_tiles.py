"""Map viewer: hot tiles as float64 (16), warm tiles as float16 (80), rest is remade."""
import random
import sys
import time
from collections import OrderedDict

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(1)


class Tiles:
    def __init__(self, hot=16, warm=80):
        self.hot, self.warm = OrderedDict(), OrderedDict()
        self.max_hot, self.max_warm = hot, warm

    def render(self, key):
        i, j = key
        line = np.linspace(i, i + 1, 64)
        return np.sin(line)[:, None] * np.cos(np.linspace(j, j + 1, 64))[None, :]

    def get(self, key):
        if key in self.hot:
            self.hot.move_to_end(key)
            return self.hot[key]
        packed = self.warm.pop(key, None)
        tile = packed.astype(np.float64) if packed is not None else self.render(key)
        self.hot[key] = tile
        if len(self.hot) > self.max_hot:
            old, data = self.hot.popitem(last=False)
            self.warm[old] = data.astype(np.float16)
            if len(self.warm) > self.max_warm:
                self.warm.popitem(last=False)
        return tile


tiles = Tiles()
pos = [50, 50]
stop = time.perf_counter() + T
total = steps = 0
while time.perf_counter() < stop:
    pos[rng.randrange(2)] += rng.choice((-1, 1, 1))
    if steps % 150 == 149:
        pos = [rng.randrange(100), rng.randrange(100)]
    for dx in (0, 1):
        total += float(tiles.get((pos[0] + dx, pos[1]))[3, 3])
    steps += 1
    time.sleep(0.003)
print("steps", steps, "hot", len(tiles.hot), "warm", len(tiles.warm), "%.2f" % total)
