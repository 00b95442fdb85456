import time
import numpy as np


class Channel:
    def __init__(self):
        self.history = np.empty((0, 8))

    def push(self, block):
        self.history = np.concatenate((self.history, block))


channels = [Channel() for _ in range(12)]
rng = np.random.default_rng(0)
for step in range(140):
    for c in channels:
        c.push(rng.random((280, 8)))
    time.sleep(0.025)
print(channels[0].history.shape)
