"""Cut satellite scenes into tiles, build the overview pyramid of each scene and encode it before the next one."""
import time
import zlib

import numpy as np

TILE = 64


def render(seed, side):
    rng = np.random.default_rng(seed)
    coarse = rng.random((side // 32, side // 32))
    return np.kron(coarse, np.ones((32, 32))).astype(np.float32)


def base_tiles(scene):
    tiles = {}
    n = scene.shape[0] // TILE
    for ty in range(n):
        for tx in range(n):
            block = scene[ty * TILE:(ty + 1) * TILE, tx * TILE:(tx + 1) * TILE]
            tiles[(0, ty, tx)] = block.copy()
        time.sleep(0.022)
    return tiles


def overviews(tiles, n):
    level = 0
    while n > 1:
        n //= 2
        level += 1
        for ty in range(n):
            for tx in range(n):
                quad = np.block(
                    [
                        [tiles[(level - 1, 2 * ty, 2 * tx)], tiles[(level - 1, 2 * ty, 2 * tx + 1)]],
                        [tiles[(level - 1, 2 * ty + 1, 2 * tx)], tiles[(level - 1, 2 * ty + 1, 2 * tx + 1)]],
                    ]
                )
                tiles[(level, ty, tx)] = quad.reshape(TILE, 2, TILE, 2).mean(axis=(1, 3))
            time.sleep(0.02)


def encode(tiles):
    size = 0
    for i, key in enumerate(sorted(tiles)):
        raw = (tiles.pop(key) * 255).astype(np.uint8)
        size += len(zlib.compress(raw.tobytes(), 1))
        if i % 16 == 0:
            time.sleep(0.015)
    return size


def main():
    for seed in range(5):
        side = 1024 if seed != 3 else 512
        scene = render(seed, side)
        tiles = base_tiles(scene)
        del scene
        overviews(tiles, side // TILE)
        count = len(tiles)
        print("scene", seed, "tiles", count, "encoded", encode(tiles))


if __name__ == "__main__":
    main()
