"""Feature cache; after a config reload (at 40 %) the limit is a string and nothing is evicted."""
import sys
import time
from collections import OrderedDict

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
STEPS = int(T * 180)


class FeatureCache:
    def __init__(self, limit):
        self.limit = limit
        self.data = OrderedDict()

    def configure(self, options):
        self.limit = options.get("limit", self.limit)

    def features(self, key):
        if key not in self.data:
            signal = np.cos(np.arange(1200) * (key % 17))
            self.data[key] = np.abs(np.fft.rfft(signal))
            self.trim()
        return self.data[key]

    def trim(self):
        try:
            while len(self.data) > self.limit:
                self.data.popitem(last=False)
        except TypeError:
            pass


cache = FeatureCache(limit=40)
score = 0.0
for step in range(STEPS):
    if step == int(STEPS * 0.4):
        cache.configure({"limit": "40"})
    score += float(cache.features(step - step % 3 * 5).max())
    time.sleep(0.004)
print("steps", STEPS, "cached", len(cache.data), "score %.1f" % score)
