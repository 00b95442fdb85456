"""Survey images: threaded dask reductions over mosaics whose size goes up and down."""
import sys
import time

import dask
import dask.array as da
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
BLOCK = 100


def block(block_id=(0, 0)):
    rng = np.random.default_rng(block_id[0] * 1000 + block_id[1])
    sky = rng.normal(100, 5, size=(BLOCK, BLOCK))
    sky[BLOCK // 2, BLOCK // 2] += 500
    return sky


def mosaic(k):
    chunks = ((BLOCK,) * k, (BLOCK,) * k)
    return da.map_blocks(block, chunks=chunks, dtype=float, meta=np.empty((0, 0)))


def photometry(img):
    bg = img.mean()
    noise = img.std()
    stars = (img > 400).sum()
    return dask.compute(bg, noise, stars)


def main():
    catalogue = {}
    start = time.perf_counter()
    run = 0
    with dask.config.set(scheduler="threads", num_workers=2):
        while (t := time.perf_counter() - start) < T:
            k = 2 + int(5 * (t / T) * abs(np.sin(run / 5)))
            bg, noise, stars = photometry(mosaic(k))
            catalogue[k] = (float(bg), float(noise), int(stars))
            run += 1
            time.sleep(0.01 if run % 20 else T / 40)
    print("sizes", len(catalogue) > 0, "all stars", all(v[2] == k * k for k, v in catalogue.items()))


main()
