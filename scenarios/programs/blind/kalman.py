"""Filters over many tracks: small matrices in batches, einsum, solve, a smoother backwards."""

import numpy as np

rng = np.random.default_rng(13)
tracks, size = 3_000, 6
motion = np.eye(size) + np.eye(size, k=3) * 0.1
seen = np.eye(3, size)
state, spread = np.zeros((tracks, size)), np.repeat(np.eye(size)[None], tracks, 0)
before = []
for step in range(70):
    state = state @ motion.T
    spread = np.einsum("ij,njk,lk->nil", motion, spread, motion) + 0.01 * np.eye(size)
    measured = rng.standard_normal((tracks, 3)) + step
    noise = np.einsum("ij,njk,lk->nil", seen, spread, seen) + 0.5 * np.eye(3)
    gain = np.linalg.solve(noise, seen @ spread).transpose(0, 2, 1)
    state = state + np.einsum("nij,nj->ni", gain, measured - state @ seen.T)
    spread = spread - gain @ seen @ spread
    before.append((state.copy(), spread.copy()))
for state, spread in reversed(before[:-1]):
    back = np.linalg.solve(spread + 0.01 * np.eye(size), motion @ spread)
    state += np.einsum("nij,nj->ni", back, state)
print(float(np.mean(before[0][0])))
