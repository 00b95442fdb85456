"""Multi-target tracker: tracks are born and die; each has a short history of states."""
import sys
import time
from collections import deque

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
F = np.eye(4) + np.diag([0.1, 0.1], k=2)
H = np.eye(2, 4)
Q, R = np.eye(4) * 1e-3, np.eye(2) * 0.05


class Track:
    def __init__(self, pos, life):
        self.x = np.array([pos[0], pos[1], 0.0, 0.0])
        self.P = np.eye(4)
        self.life = life
        self.history = deque(maxlen=40)

    def step(self, z):
        x = F @ self.x
        P = F @ self.P @ F.T + Q
        S = H @ P @ H.T + R
        K = P @ H.T @ np.linalg.inv(S)
        self.x = x + K @ (z - H @ x)
        self.P = (np.eye(4) - K @ H) @ P
        self.history.append((self.x, self.P))
        self.life -= 1
        return self.life > 0

    def smooth(self):
        return np.mean([h[0] for h in self.history], axis=0)


def main():
    rng = np.random.default_rng(2)
    tracks, lost, frame = [], 0, 0
    start = time.perf_counter()
    while (t := time.perf_counter() - start) < T:
        target = 10 + int(30 * min(1.0, t / (0.3 * T)))
        while len(tracks) < target:
            tracks.append(Track(rng.normal(size=2), int(rng.integers(60, 140))))
        alive = [tr for tr in tracks if tr.step(tr.x[:2] + rng.normal(0, 0.2, 2))]
        lost += len(tracks) - len(alive)
        tracks = alive
        if frame % 10 == 0:
            centre = np.mean([tr.smooth() for tr in tracks], axis=0)
        frame += 1
        time.sleep(0.002)
    print("frames", frame > 0, "tracks", len(tracks) <= 40, centre.shape)


main()
