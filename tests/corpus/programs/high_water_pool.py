"""A buffer pool whose free list never shrinks; load climbs to a peak, later peaks are lower."""
import math
import random
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
STEPS = int(T * 150)
rng = random.Random(10)


class Pool:
    def __init__(self, samples):
        self.samples = samples
        self.free = []
        self.made = 0

    def take(self):
        if self.free:
            return self.free.pop()
        self.made += 1
        return np.empty(self.samples, dtype=np.float32)

    def give(self, buf):
        self.free.append(buf)


pool = Pool(50_000)
busy = []
for step in range(STEPS):
    day = step / STEPS
    load = 25 + 45 * math.exp(-((day - 0.33) / 0.12) ** 2) + 12 * math.sin(40 * day)
    while len(busy) < load:
        buf = pool.take()
        buf[:100] = step
        busy.append(buf)
    rng.shuffle(busy)
    for _ in range(min(len(busy), max(3, int(len(busy) - load)))):
        pool.give(busy.pop())
    time.sleep(0.005)
print("made", pool.made, "busy", len(busy), "free", len(pool.free))
