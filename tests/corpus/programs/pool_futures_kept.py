import sys
import time
from concurrent.futures import ThreadPoolExecutor
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


def render(tile):
    y, x = np.mgrid[0:40, 0:40]
    z = np.sin(x * 0.1 + tile) * np.cos(y * 0.07 * (tile % 5))
    img = (z * 127 + 128).astype(np.uint8)
    return img


def main():
    jobs = []
    with ThreadPoolExecutor(4) as pool:
        for tile in range(int(T * 150)):
            f = pool.submit(render, tile)
            jobs.append(f)
            if tile % 8 == 7:
                f.result()
                time.sleep(0.045)
    print(len(jobs), sum(f.done() for f in jobs))


main()
