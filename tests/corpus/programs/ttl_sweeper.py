"""DNS-like answer cache: entries live 0.5 s, a sweep every 0.7 s removes them."""
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
TTL, SWEEP = 0.5, 0.7


class TTLCache:
    def __init__(self):
        self.entries = {}
        self.next_sweep = time.monotonic() + SWEEP

    def get(self, key):
        hit = self.entries.get(key)
        if hit and hit[0] > time.monotonic():
            return hit[1]
        return None

    def put(self, key, value):
        self.entries[key] = (time.monotonic() + TTL, value)

    def sweep(self):
        now = time.monotonic()
        if now < self.next_sweep:
            return
        self.next_sweep = now + SWEEP
        for k in [k for k, (t, _) in self.entries.items() if t <= now]:
            del self.entries[k]


def resolve(key):
    return np.full(600 + key % 300, key, dtype=np.float64)


cache = TTLCache()
stop = time.monotonic() + T
n = 0
while time.monotonic() < stop:
    n += 1
    for key in (n, n - 40):
        if cache.get(key) is None:
            cache.put(key, resolve(key))
    cache.sweep()
    time.sleep(0.003)
print("asked", n, "alive", len(cache.entries))
