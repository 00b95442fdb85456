"""Sensor fusion with debug logging; a MemoryHandler waits for an error that never comes."""
import io
import logging
import logging.handlers
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0


def setup():
    sink = logging.StreamHandler(io.StringIO())
    buffered = logging.handlers.MemoryHandler(10**7, logging.ERROR, sink, flushOnClose=False)
    log = logging.getLogger("fusion")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    log.addHandler(buffered)
    return log


log = setup()


def read_sensors(rng, n=6, m=250):
    truth = np.cumsum(rng.normal(size=m))
    return truth + rng.normal(0, 0.5, size=(n, m))


def fuse(readings):
    var = readings.var(axis=1)
    weights = 1.0 / (var + 1e-9)
    weights /= weights.sum()
    fused = weights @ readings
    log.debug("weights %s fused from %s", weights.round(2).tolist(), readings)
    return fused


def main():
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    cycles, drift = 0, 0.0
    while time.perf_counter() - start < T:
        readings = read_sensors(rng)
        fused = fuse(readings)
        drift += float(np.diff(fused).mean())
        if not np.isfinite(drift):
            log.error("diverged after %d cycles", cycles)
        cycles += 1
        time.sleep(0.003)
    print("cycles", cycles > 0, "drift", bool(np.isfinite(drift)))


main()
