"""Rasters: tiles painted into a canvas, a distance map, a pyramid of means, a codec of runs."""

import numpy as np

rng = np.random.default_rng(3)
levels = []
for step in range(25):
    side = int(rng.integers(700, 1400))
    canvas = np.zeros((side, side), np.uint16)
    for _tile in range(80):
        y, x = rng.integers(0, side - 128, 2)
        canvas[y : y + 128, x : x + 128] += rng.integers(0, 9, (128, 128), dtype=np.uint16)
    yy, xx = np.indices(canvas.shape)
    near = np.sqrt((yy - side // 2) ** 2 + (xx - side // 2) ** 2) < side // 3
    level = np.where(near, canvas, 0).astype(np.float32)
    while level.shape[0] > 80:
        even = level[: level.shape[0] // 2 * 2, : level.shape[1] // 2 * 2]
        level = even.reshape(even.shape[0] // 2, 2, even.shape[1] // 2, 2).mean((1, 3))
        levels.append(level)
    flat = canvas.ravel()
    edges = np.flatnonzero(np.diff(flat)) + 1
    runs = np.diff(np.concatenate([[0], edges, [flat.size]]))
    if step % 4 == 0:
        levels.append(runs.astype(np.int32))
print(len(levels))
