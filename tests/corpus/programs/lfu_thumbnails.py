"""Serve compressed thumbnails made from NumPy images through an LFU cache of bytes."""
import random
import time
import zlib
from collections import OrderedDict, defaultdict

import numpy as np

rng = random.Random(52)


class LFU:
    def __init__(self, cap):
        self.cap = cap
        self.values, self.freq = {}, {}
        self.buckets = defaultdict(OrderedDict)
        self.least = 1

    def _bump(self, k):
        f = self.freq[k]
        del self.buckets[f][k]
        if not self.buckets[f]:
            del self.buckets[f]
            if self.least == f:
                self.least = f + 1
        self.freq[k] = f + 1
        self.buckets[f + 1][k] = None

    def get(self, k):
        if k in self.values:
            self._bump(k)
            return self.values[k]
        return None

    def put(self, k, v):
        if len(self.values) >= self.cap:
            old, _ = self.buckets[self.least].popitem(last=False)
            if not self.buckets[self.least]:
                del self.buckets[self.least]
            del self.values[old], self.freq[old]
        self.values[k], self.freq[k] = v, 1
        self.buckets[1][k] = None
        self.least = 1


def thumbnail(image_id):
    g = np.random.default_rng(image_id)
    img = g.integers(0, 60, size=(96, 96), dtype=np.uint8)
    small = img.reshape(48, 2, 48, 2).mean(axis=(1, 3)).astype(np.uint8)
    return zlib.compress(img.tobytes()[:5000] + small.tobytes(), 1)


def main():
    cache = LFU(1400)
    served = miss = 0
    for tick in range(165):
        for _ in range(34):
            k = int(12000 ** rng.random()) if rng.random() < 0.7 else rng.randrange(12000)
            t = cache.get(k)
            if t is None:
                miss += 1
                t = thumbnail(k)
                cache.put(k, t)
            served += len(t)
        time.sleep(0.038)
    print(served, miss, len(cache.values))


main()
