"""Inspection line: every tile is normalised; the few suspicious tiles stay in a review queue."""
import sys
import time
from functools import partial

import numpy as np
from PIL import Image, ImageFilter

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
SIDE, TILE = 320, 32


def camera(rng):
    base = rng.integers(100, 140, size=(SIDE // 4, SIDE // 4), dtype=np.uint8)
    if rng.random() < 0.7:
        r, c = rng.integers(4, SIDE // 4 - 6, size=2)
        base[r:r + 4, c:c + 4] = 255
    img = Image.fromarray(base).resize((SIDE, SIDE)).filter(ImageFilter.GaussianBlur(1))
    return np.asarray(img)


def normalise(tile):
    out = tile.astype(np.float64)
    out -= out.mean()
    out /= out.std() + 1e-9
    return out


def tiles(image):
    for r in range(0, SIDE, TILE):
        for c in range(0, SIDE, TILE):
            yield (r, c), normalise(image[r:r + TILE, c:c + TILE])


def describe(at, tile):
    return f"{at}: peak {tile.max():.1f}"


class Review:
    def __init__(self):
        self.todo = []

    def inspect(self, image):
        bad = 0
        for at, tile in tiles(image):
            if tile.max() > 3.5:
                self.todo.append(partial(describe, at, tile))
                bad += 1
        return bad


def main():
    rng = np.random.default_rng(0)
    review = Review()
    start = time.perf_counter()
    images = bad = 0
    while time.perf_counter() - start < T:
        bad += review.inspect(camera(rng))
        images += 1
        time.sleep(0.002)
    print("images", images > 0, "suspicious", bad > 0, review.todo[-1]() != "")


main()
