"""Off-policy learner: the replay memory gets full after 36 % of the training."""
import random
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
STEPS = int(T * 220)
CAPACITY = int(STEPS * 0.36)
rng = np.random.default_rng(0)
pick = random.Random(0)


class Replay:
    def __init__(self, capacity):
        self.capacity = capacity
        self.items = []
        self.head = 0

    def add(self, item):
        if len(self.items) < self.capacity:
            self.items.append(item)
        else:
            self.items[self.head] = item
            self.head = (self.head + 1) % self.capacity

    def sample(self, k):
        return [pick.choice(self.items) for _ in range(k)]


memory = Replay(CAPACITY)
weights = np.zeros(128)
state = rng.normal(size=128)
for step in range(STEPS):
    action = rng.normal(size=16)
    nxt = 0.9 * state + rng.normal(size=128)
    reward = float(nxt @ nxt)
    memory.add((state, action, reward, nxt))
    state = nxt
    if step > 8:
        batch = memory.sample(8)
        xs = np.stack([b[0] for b in batch])
        ys = np.array([b[2] for b in batch])
        weights += 1e-4 * xs.T @ (ys - xs @ weights) / len(ys)
        np.clip(weights, -5, 5, out=weights)
    time.sleep(0.003)
print("memory", len(memory.items), "w %.3f" % weights.std())
