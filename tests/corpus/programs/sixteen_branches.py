import time
import numpy as np


class Engine:
    def __init__(self):
        self.log = {}

    def on(self, kind, i):
        if kind == 0:
            a = np.zeros(10_000) + i
        elif kind == 1:
            a = np.ones(10_000) * i
        elif kind == 2:
            a = np.full(10_000, i * 1.0)
        elif kind == 3:
            a = np.arange(10_000)
        elif kind == 4:
            a = np.linspace(0, i, 10_000)
        elif kind == 5:
            a = np.random.default_rng(i).random(10_000)
        elif kind == 6:
            a = np.tile(np.arange(10.0), 1_000)
        elif kind == 7:
            a = np.repeat(np.arange(100.0), 100)
        elif kind == 8:
            a = np.eye(100)
        elif kind == 9:
            a = np.outer(np.arange(100.0), np.arange(100.0))
        elif kind == 10:
            a = np.hstack([np.zeros(5_000), np.ones(5_000)])
        elif kind == 11:
            a = np.vstack([np.zeros(5_000), np.ones(5_000)])
        elif kind == 12:
            a = np.empty((100, 100))
        elif kind == 13:
            a = np.array(range(10_000), dtype=float)
        elif kind == 14:
            a = np.diag(np.arange(100.0))
        else:
            a = np.cumsum(np.ones(10_000))
        self.log[i, kind] = a


def main():
    e = Engine()
    end = time.monotonic() + 4.2
    i = 0
    while time.monotonic() < end:
        e.on(i * 7 % 16, i)
        i += 1
        time.sleep(0.004)
    print(len(e.log))
    return e


engine = main()
