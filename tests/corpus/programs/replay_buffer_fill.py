"""Q-learning on a toy world with a replay buffer of bounded length."""
import random
import sys
import time
from collections import deque
from typing import NamedTuple

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
CAPACITY = 500
OBS = 1024


class Transition(NamedTuple):
    obs: np.ndarray
    action: int
    reward: float
    nxt: np.ndarray


class World:
    def __init__(self, rng):
        self.rng = rng
        self.pos = np.zeros(2)

    def observe(self):
        grid = np.linspace(-2, 2, 32)
        return np.exp(-((grid[:, None] - self.pos[0]) ** 2 + (grid[None] - self.pos[1]) ** 2)).ravel()

    def step(self, action):
        move = [(0.1, 0), (-0.1, 0), (0, 0.1), (0, -0.1)][action]
        self.pos = np.clip(self.pos + move + self.rng.normal(0, 0.02, 2), -2, 2)
        return self.observe(), -float(np.hypot(*self.pos))


def main():
    rng = np.random.default_rng(8)
    world, buf = World(rng), deque(maxlen=CAPACITY)
    q = rng.normal(0, 0.01, size=(OBS, 4))
    obs = world.observe()
    start = time.perf_counter()
    steps = 0
    while (t := time.perf_counter() - start) < T:
        due = int(t / (0.4 * T) * CAPACITY)
        while steps <= due:
            action = int(np.argmax(obs @ q)) if random.random() > 0.1 else random.randrange(4)
            nxt, reward = world.step(action)
            buf.append(Transition(obs, action, reward, nxt))
            obs = nxt
            steps += 1
        for tr in random.sample(buf, min(8, len(buf))):
            target = tr.reward + 0.9 * float(np.max(tr.nxt @ q))
            q[:, tr.action] += 1e-3 * (target - float(tr.obs @ q[:, tr.action])) * tr.obs
        time.sleep(0.002)
    print("buffer", len(buf) <= CAPACITY, "finite", bool(np.isfinite(q).all()))


main()
