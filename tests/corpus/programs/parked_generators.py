"""Readers are generators; those with a bad header are put aside half-read and never closed."""
import random
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(17)


def read_trace(number, samples):
    block = np.random.default_rng(number).normal(size=samples)
    yield {"id": number, "ok": number % 4 != 3, "n": samples}
    for start in range(0, samples, 1000):
        yield block[start:start + 1000]


class Importer:
    def __init__(self):
        self.parked = []
        self.energy = 0.0

    def take(self, gen):
        header = next(gen)
        if not header["ok"]:
            self.parked.append((header["id"], gen))
            return
        for piece in gen:
            self.energy += float(np.square(piece).sum())


imp = Importer()
stop = time.perf_counter() + T
n = 0
while time.perf_counter() < stop:
    imp.take(read_trace(n, rng.randint(2000, 9000)))
    n += 1
    time.sleep(0.006)
print("traces", n, "parked", len(imp.parked), "energy %.0f" % imp.energy)
