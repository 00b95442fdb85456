"""Cache decoded audio clips of very different lengths under a byte budget with least-recently-used eviction."""
import time
from collections import OrderedDict

import numpy as np

BUDGET = 10 * 1024 * 1024


class ByteBudgetCache:
    def __init__(self, budget):
        self.budget = budget
        self.used = 0
        self.items = OrderedDict()
        self.evictions = 0

    def get(self, key):
        clip = self.items.get(key)
        if clip is not None:
            self.items.move_to_end(key)
        return clip

    def put(self, key, clip):
        if clip.nbytes > self.budget // 4:
            return
        self.items[key] = clip
        self.used += clip.nbytes
        while self.used > self.budget:
            _, old = self.items.popitem(last=False)
            self.used -= old.nbytes
            self.evictions += 1


def decode(clip_id, scale):
    n = 2000 + (clip_id * 7919) % int(6000 * scale)
    t = np.arange(n) / 8000.0
    return np.sin(2 * np.pi * (200 + clip_id % 50) * t) * np.exp(-t)


def main():
    rng = np.random.default_rng(3)
    cache = ByteBudgetCache(BUDGET)
    energy = 0.0
    hits = 0
    steps = 1500
    for step in range(steps):
        scale = 1.0 + 3.0 * step / steps
        clip_id = int(rng.pareto(0.7) * 8) % 5000
        clip = cache.get(clip_id)
        if clip is None:
            clip = decode(clip_id, scale)
            cache.put(clip_id, clip)
        else:
            hits += 1
        energy += float(clip[:500] @ clip[:500])
        time.sleep(0.003)
    print("hits", hits, "evictions", cache.evictions, "bytes", cache.used, "energy", round(energy, 2))


if __name__ == "__main__":
    main()
