import time
import numpy as np


def cum(n):
    return np.cumsum(np.random.default_rng(n).random(n * 40))


def pairs(n):
    x = np.arange(n // 4, dtype=float)
    return np.abs(x[:, None] - x[None, :])


def spect(n):
    return np.abs(np.fft.rfft(np.ones(n * 20)))


def study(algos, sizes):
    table = {}
    for n in sizes:
        for f in algos:
            t = time.perf_counter()
            r = f(n)
            table[f.__name__, n] = (time.perf_counter() - t, float(r.flat[-1]))
            del r
            time.sleep(0.02)
    return table


print(len(study([cum, pairs, spect], range(100, 4_001, 100))))
