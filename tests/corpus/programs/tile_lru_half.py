"""Map viewer: tiles in an lru_cache whose bound is reached when the user has panned long enough."""
import functools
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
TILE = 96
KEEP = 120


@functools.lru_cache(maxsize=KEEP)
def render_tile(tx, ty):
    x = np.linspace(tx, tx + 1, TILE)[None, :]
    y = np.linspace(ty, ty + 1, TILE)[:, None]
    height = np.zeros((TILE, TILE))
    for octave in range(1, 5):
        height += np.sin(x * 3.1 * octave) * np.cos(y * 2.3 * octave) / octave
    gy, gx = np.gradient(height)
    shade = np.clip(0.5 + gx * 4 - gy * 4, 0, 1)
    return shade.astype(np.float32)


def viewport(column):
    rows = [np.hstack([render_tile(column + dx, ty) for dx in range(3)]) for ty in range(2)]
    return np.vstack(rows)


def overlay(view, t):
    mask = np.hypot(*np.indices(view.shape) - np.array(view.shape)[:, None, None] / 2) < 40 + 10 * np.sin(t)
    return np.where(mask, 1.0 - view, view)


def main():
    start = time.perf_counter()
    frames, total = 0, 0.0
    columns = KEEP / 2 / 0.45
    while (t := time.perf_counter() - start) < T:
        column = int(t / T * columns)
        frame = overlay(viewport(column), t)
        total += float(frame.mean())
        frames += 1
        time.sleep(0.003)
    info = render_tile.cache_info()
    print("bounded:", info.currsize <= KEEP, "frames", frames > 0, round(total / frames, 1))


main()
