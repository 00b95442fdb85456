import time
import numpy as np


class Pipeline:
    def __init__(self):
        self.debug = []

    def read(self, k):
        a = np.random.default_rng(k).random((250, 500))
        self.debug.append(("read", a))
        return a

    def clean(self, a):
        b = np.clip(a, 0.1, 0.9)
        self.debug.append(("clean", b))
        return b

    def scale(self, b):
        c = (b - b.mean()) / b.std()
        self.debug.append(("scale", c))
        return c

    def smooth(self, c):
        d = np.apply_along_axis(np.cumsum, 0, c)
        self.debug.append(("smooth", d))
        return d

    def diff(self, d):
        e = np.gradient(d, axis=0)
        self.debug.append(("diff", e))
        return e

    def rank(self, e):
        f = np.argsort(e, axis=1)
        self.debug.append(("rank", f))
        return f


def idle(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        np.ones(5_000).sum()
        time.sleep(0.002)


pl = Pipeline()
for k in range(9):
    x = pl.read(k)
    for f in (pl.clean, pl.scale, pl.smooth, pl.diff, pl.rank):
        x = f(x)
        idle(0.055)
    idle(0.1)
