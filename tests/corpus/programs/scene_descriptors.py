"""Describe video frames with filter responses, caching the responses per frame object with lru_cache."""
import functools
import time

import numpy as np
from scipy.ndimage import gaussian_filter


class Frame:
    def __init__(self, index, rng):
        self.index = index
        self.pixels = rng.random((72, 96))

    @functools.lru_cache(maxsize=None)
    def blurred(self, sigma):
        return gaussian_filter(self.pixels, sigma)

    def edges(self):
        return float(np.abs(self.blurred(1.0) - self.blurred(2.0)).mean())

    def brightness(self):
        return float(self.blurred(2.0).mean())


def main():
    rng = np.random.default_rng(23)
    previous = None
    cuts = 0
    level = 0.0
    for index in range(300):
        frame = Frame(index, rng)
        level += frame.brightness()
        if previous is not None and abs(frame.edges() - previous.edges()) > 0.001:
            cuts += 1
        previous = frame
        time.sleep(0.014)
    print("cuts", cuts, "level", round(level / 300, 4))


if __name__ == "__main__":
    main()
