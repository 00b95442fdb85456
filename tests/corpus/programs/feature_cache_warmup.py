"""Feature service: the audience grows to its usual size, then the cache only refreshes."""
import sys
import time
from collections import OrderedDict

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
AUDIENCE = 400
DIM = 4000


class FeatureStore:
    def __init__(self, capacity):
        self.capacity = capacity
        self.rows = OrderedDict()
        self.hits = self.misses = 0

    def _load(self, user, version=0):
        gen = np.random.default_rng((user, version))
        return gen.normal(size=DIM).astype(np.float32)

    def get(self, user):
        if user in self.rows:
            self.rows.move_to_end(user)
            self.hits += 1
            return self.rows[user]
        self.misses += 1
        row = self.rows[user] = self._load(user)
        if len(self.rows) > self.capacity:
            self.rows.popitem(last=False)
        return row

    def refresh(self, user, version):
        if user in self.rows:
            self.rows[user] = self._load(user, version)


def main():
    rng = np.random.default_rng(0)
    store = FeatureStore(1000)
    weights = rng.normal(size=DIM).astype(np.float32)
    start = time.perf_counter()
    served = 0
    while (now := time.perf_counter() - start) < T:
        audience = 1 + int((AUDIENCE - 1) * min(1.0, now / (T / 3)))
        users = rng.integers(0, audience, size=16)
        users[0] = audience - 1
        scores = [float(store.get(int(u)) @ weights) for u in users]
        store.refresh(int(rng.integers(0, audience)), served)
        served += len(scores)
        time.sleep(0.002)
    print(f"served={served > 0} cached={len(store.rows) <= store.capacity}")


main()
