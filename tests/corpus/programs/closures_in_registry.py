import functools
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
handlers = {}


def make_filter(cut, n):
    taps = np.sinc(np.arange(-n, n + 1) * cut) * np.hamming(2 * n + 1)

    def apply(x):
        return np.convolve(x, taps, mode="same")
    return apply


def scale(weights, x):
    return x * weights[:x.size]


x = np.random.default_rng(0).random(256)
for i in range(int(T * 100)):
    f = make_filter(0.1 + i % 7 / 10, 120)
    handlers["filter-%d" % i] = f
    handlers["scale-%d" % i] = functools.partial(scale, np.linspace(0, 1, 400))
    x = handlers["scale-%d" % i](f(x)) + 1e-3
    x /= x.max() + 1e-9
    time.sleep(0.0085)
print(round(float(x.sum()), 6))
