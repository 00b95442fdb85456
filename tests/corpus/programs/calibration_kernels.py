"""Correct sensor readings with interpolation kernels cached by sensor and calibration offset."""
import time

import numpy as np

SENSORS = 40


class KernelCache:
    def __init__(self):
        self.kernels = {}
        self.hits = self.misses = 0

    def kernel(self, sensor, offset):
        key = (sensor, offset)
        found = self.kernels.get(key)
        if found is None:
            self.misses += 1
            shift = 0.0 if offset != offset else offset
            x = np.linspace(-4, 4, 2001) - shift
            found = np.sinc(x) * np.exp(-x * x / 8)
            self.kernels[key] = found
        else:
            self.hits += 1
        return found


def calibrate(sensor, reading):
    reference = reading[:32]
    if sensor % 8 == 5:
        reference = reference[reference > 1e6]
    total = float(reference.sum())
    return round((total / reference.size) if reference.size else float("nan"), 0)


def main():
    rng = np.random.default_rng(1)
    cache = KernelCache()
    peak = 0.0
    for tick in range(110):
        for sensor in range(SENSORS):
            reading = rng.normal(sensor, 0.3, 256)
            offset = calibrate(sensor, reading)
            kernel = cache.kernel(sensor, offset)
            peak = max(peak, float(reading @ kernel[800:1056]))
        time.sleep(0.04)
    print("hits", cache.hits, "misses", cache.misses, "peak", round(peak, 3))


if __name__ == "__main__":
    main()
