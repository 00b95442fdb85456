"""Train a linear Q function on a small grid world with a replay buffer and a periodically copied target network."""
import time

import numpy as np

CAPACITY = 1200
SIDE = 9


class Replay:
    def __init__(self, capacity):
        self.capacity = capacity
        self.rows = []
        self.at = 0

    def add(self, row):
        if len(self.rows) < self.capacity:
            self.rows.append(row)
        else:
            self.rows[self.at] = row
            self.at = (self.at + 1) % self.capacity

    def sample(self, rng, n):
        return [self.rows[i] for i in rng.integers(0, len(self.rows), n)]


def observe(pos, goal):
    planes = np.zeros((6, SIDE, SIDE), dtype=np.float32)
    planes[0, pos[0], pos[1]] = 1.0
    planes[1, goal[0], goal[1]] = 1.0
    planes[2] = abs(pos[0] - goal[0]) / SIDE
    planes[3] = abs(pos[1] - goal[1]) / SIDE
    planes[4] = float(pos[0] > goal[0])
    planes[5] = float(pos[1] > goal[1])
    return planes.reshape(-1)


def main():
    rng = np.random.default_rng(9)
    moves = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])
    weights = np.zeros((4, 6 * SIDE * SIDE), dtype=np.float32)
    target = weights.copy()
    replay = Replay(CAPACITY)
    wins = 0
    pos, goal = np.array([0, 0]), np.array([7, 7])
    obs = observe(pos, goal)
    for step in range(2600):
        eps = max(0.1, 1.0 - step / 1500)
        act = int(rng.integers(0, 4)) if rng.random() < eps else int(np.argmax(weights @ obs))
        pos = np.clip(pos + moves[act], 0, SIDE - 1)
        nxt = observe(pos, goal)
        done = bool((pos == goal).all())
        replay.add((obs, act, 1.0 if done else -0.02, nxt, done))
        obs = nxt
        if done:
            wins += 1
            pos = rng.integers(0, SIDE, 2)
            obs = observe(pos, goal)
        if step > 100 and step % 4 == 0:
            for o, a, r, n, d in replay.sample(rng, 16):
                goal_value = r if d else r + 0.95 * float((target @ n).max())
                weights[a] += 0.01 * (goal_value - float(weights[a] @ o)) * o
            time.sleep(0.007)
        if step % 200 == 0:
            target = weights.copy()
    print("wins", wins, "norm", round(float(np.linalg.norm(weights)), 3))


if __name__ == "__main__":
    main()
