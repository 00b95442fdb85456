"""Video indexer keeps 'only' the first row of every scene's frame - a view of the whole frame."""
import random
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(30)


def decode(k, bright):
    frame = np.empty((120, 160, 3), dtype=np.uint8)
    frame[:] = (bright + k) % 200
    return frame


class SceneIndex:
    def __init__(self):
        self.rows = {}
        self.last = None

    def feed(self, k, frame):
        level = float(frame[::8, ::8].mean())
        if self.last is None or abs(level - self.last) > 10:
            self.rows[k] = frame[0]
        self.last = level


index = SceneIndex()
bright = 40
stop = time.perf_counter() + T
k = 0
while time.perf_counter() < stop:
    if rng.random() < 0.09:
        bright = rng.randrange(200)
    index.feed(k, decode(k, bright))
    k += 1
    time.sleep(0.005)
print("frames", k, "scenes", len(index.rows), "kept rows", sum(r.nbytes for r in index.rows.values()))
