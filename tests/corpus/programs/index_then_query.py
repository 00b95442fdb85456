import time
import numpy as np


class Index:
    def __init__(self):
        self.rows = []

    def add(self, v):
        self.rows.append(v / np.linalg.norm(v))

    def build(self):
        self.m = np.stack(self.rows)
        self.rows = None

    def query(self, v):
        return int(np.argmax(self.m @ v))


rng = np.random.default_rng(2)
ix = Index()
t0 = time.monotonic()
while time.monotonic() - t0 < 2.0:
    ix.add(rng.normal(size=512))
    time.sleep(0.002)
ix.build()
hits = 0
while time.monotonic() - t0 < 4.5:
    hits += ix.query(rng.normal(size=512))
    time.sleep(0.003)
print(hits > 0)
