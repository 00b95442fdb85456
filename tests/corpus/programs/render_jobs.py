"""Run short rendering jobs that register a finalizer to report statistics once a job is no longer used."""
import time
import weakref

import numpy as np

STATS = {"finished": 0, "rays": 0}


class RenderJob:
    def __init__(self, index, rng):
        self.index = index
        self.rays = int(rng.integers(500, 900))
        self.film = np.zeros((60, 80, 3), dtype=np.float32)
        self._finalizer = weakref.finalize(self, self._report)

    def _report(self):
        STATS["finished"] += 1
        STATS["rays"] += self.rays

    def trace(self, rng):
        y = rng.integers(0, 60, self.rays)
        x = rng.integers(0, 80, self.rays)
        color = rng.random((self.rays, 3), dtype=np.float32)
        np.add.at(self.film, (y, x), color)

    def tonemap(self):
        return self.film / (1.0 + self.film)


def main():
    rng = np.random.default_rng(61)
    exposure = 0.0
    for index in range(320):
        job = RenderJob(index, rng)
        for _ in range(3):
            job.trace(rng)
        exposure += float(job.tonemap().mean())
        time.sleep(0.014)
    print("exposure", round(exposure, 4))


if __name__ == "__main__":
    main()
