"""LFU cache with own bookkeeping: an entry re-put under load loses its count and can't be evicted."""
import random
import sys
import time
from collections import Counter

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(23)


class LFU:
    def __init__(self, size):
        self.size = size
        self.data = {}
        self.uses = Counter()
        self.puts = 0

    def get(self, key):
        if key in self.uses:
            self.uses[key] += 1
        return self.data.get(key)

    def age(self):
        for k in self.uses:
            self.uses[k] //= 2

    def put(self, key, value):
        self.puts += 1
        if self.puts % 40 == 0:
            self.age()
        if self.uses.get(key, 0) > 1:
            self.data[key] = value
            del self.uses[key]
            return
        self.data[key] = value
        self.uses[key] += 1
        if len(self.uses) > self.size:
            victim = min((k for k in self.uses if k != key), key=self.uses.__getitem__)
            del self.uses[victim]
            self.data.pop(victim, None)


def compute(key):
    return np.sqrt(np.arange(key % 50, key % 50 + 900.0))


cache = LFU(60)
stop = time.monotonic() + T
n = base = 0
while time.monotonic() < stop:
    base = n // 4
    key = base + rng.randrange(40)
    if cache.get(key) is None or rng.random() < 0.2:
        cache.put(key, compute(key))
    n += 1
    time.sleep(0.002)
print("asked", n, "counted", len(cache.uses))
