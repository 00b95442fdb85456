"""Spool uploads as objects with finalizers that tidy up after every upload."""
import random
import time
import weakref

import numpy as np

rng = random.Random(35)
sizes = np.random.default_rng(35).integers(20, 60, size=100000).tolist()
stats = {"cleaned": 0}


class Upload:
    def __init__(self, n):
        self.name = f"upload-{n}"
        self.parts = [f"{self.name}/part-{i}-{rng.getrandbits(64):x}" for i in range(sizes[n])]
        self.headers = {f"X-{i}": self.name + str(i) for i in range(10)}
        self._fin = weakref.finalize(self, self.tidy, self.name)

    def tidy(self, name):
        stats["cleaned"] += 1
        self.parts.clear()

    def close(self):
        self._fin()

    def digest(self):
        return hash(tuple(self.parts)) & 0xFF


def main():
    acc = n = 0
    for tick in range(165):
        for _ in range(15):
            u = Upload(n)
            n += 1
            acc += u.digest() >= 0
            if rng.random() < 0.5:
                u.close()
        time.sleep(0.041)
    print(n, acc, stats["cleaned"] > 0)


main()
