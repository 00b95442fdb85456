import contextlib
import itertools
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


def chunks(seed, n):
    g = np.random.default_rng(seed)
    while True:
        yield g.standard_normal(n)


def detrend(src):
    for a in src:
        yield a - np.linspace(a[0], a[-1], a.size)


def energy(src):
    for a in src:
        yield float((a * a).sum())


tot = 0.0
for i in range(int(T * 60)):
    with contextlib.closing(chunks(i, 700 + i % 300)) as c:
        for e in itertools.islice(energy(detrend(c)), 6):
            tot += e
            time.sleep(0.002)
print(round(tot, 3))
