"""Serve photo thumbnails through a least-frequently-used cache with a fixed number of entries."""
import time
from collections import OrderedDict, defaultdict

import numpy as np

CAPACITY = 220


class LFU:
    def __init__(self, capacity):
        self.capacity = capacity
        self.values = {}
        self.freq = {}
        self.buckets = defaultdict(OrderedDict)
        self.min_freq = 0
        self.evicted = 0

    def _touch(self, key):
        f = self.freq[key]
        del self.buckets[f][key]
        if not self.buckets[f]:
            del self.buckets[f]
            if self.min_freq == f:
                self.min_freq = f + 1
        self.freq[key] = f + 1
        self.buckets[f + 1][key] = None

    def get(self, key):
        if key in self.values:
            self._touch(key)
            return self.values[key]
        return None

    def put(self, key, value):
        if len(self.values) >= self.capacity:
            victim, _ = self.buckets[self.min_freq].popitem(last=False)
            if not self.buckets[self.min_freq]:
                del self.buckets[self.min_freq]
            del self.values[victim], self.freq[victim]
            self.evicted += 1
        self.values[key] = value
        self.freq[key] = 1
        self.buckets[1][key] = None
        self.min_freq = 1


def decode_photo(photo_id):
    y, x = np.mgrid[0:96, 0:96]
    r = np.sin(x / (3 + photo_id % 11)) + np.cos(y / (5 + photo_id % 7))
    return np.stack([r, r * 0.5, -r], axis=-1).astype(np.float32)


def thumbnail(photo):
    return photo.reshape(48, 2, 48, 2, 3).mean(axis=(1, 3))


def main():
    rng = np.random.default_rng(8)
    cache = LFU(CAPACITY)
    hits = 0
    check = 0.0
    for request in range(2000):
        drift = request // 20
        photo_id = drift + int(rng.zipf(1.25)) % 1500
        thumb = cache.get(photo_id)
        if thumb is None:
            thumb = thumbnail(decode_photo(photo_id))
            cache.put(photo_id, thumb)
        else:
            hits += 1
        check += float(thumb[request % 48, 3, 0])
        time.sleep(0.002)
    print("hits", hits, "evicted", cache.evicted, "check", round(check, 3))


if __name__ == "__main__":
    main()
