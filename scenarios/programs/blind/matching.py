"""Points of two pictures matched: patches, descriptors, distances in blocks, a model by trials."""

import numpy as np

rng = np.random.default_rng(31)
image = rng.random((700, 900), dtype=np.float32)
for _ in range(3):
    image += np.roll(image, 1, 0) + np.roll(image, 1, 1)
    image /= 3
other = np.roll(image, (11, -7), (0, 1)) + rng.normal(0, 0.01, image.shape).astype(np.float32)
described = []
for picture in (image, other):
    gy, gx = np.gradient(picture, axis=0), np.gradient(picture, axis=1)
    strength = gx * gx + gy * gy
    inner = strength[16:-16, 16:-16]
    top = np.argpartition(-inner.ravel(), 3_000)[:3_000]
    rows, columns = np.unravel_index(top, inner.shape)
    points = np.stack([rows + 16, columns + 16], axis=1)
    windows = np.lib.stride_tricks.sliding_window_view(picture, (16, 16))
    patches = np.array([windows[r - 8, c - 8] for r, c in points]).reshape(len(points), -1)
    patches -= patches.mean(1, keepdims=True)
    patches /= np.linalg.norm(patches, axis=1, keepdims=True)
    described.append((points, patches))
(points, one), (others, two) = described
found = []
for start in range(0, len(one), 250):
    likeness = one[start : start + 250] @ two.T
    best = likeness.argmax(1)
    sure = likeness.max(1) > 0.9
    found.append(np.stack([np.arange(start, start + len(best))[sure], best[sure]], axis=1))
pairs = np.concatenate(found)
moves = others[pairs[:, 1]] - points[pairs[:, 0]]
votes = [(np.abs(moves - moves[i]).max(1) < 2).sum() for i in rng.integers(0, len(moves), 400)]
print(len(pairs), max(votes))
