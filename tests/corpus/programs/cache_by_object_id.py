import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Memo:
    def __init__(self, fn):
        self.fn = fn
        self.store = {}

    def __call__(self, arg):
        hit = self.store.get(id(arg))
        if hit is None:
            hit = self.store[id(arg)] = (arg, self.fn(arg))
        return hit[1]


@Memo
def normalised(a):
    return (a - a.min()) / (a.max() - a.min() + 1e-9)


t = 0.0
for i in range(int(T * 85)):
    signal = np.random.default_rng(i).random((40, 30))
    t += float(normalised(signal).mean())
    t += float(normalised(signal).std())
    time.sleep(0.0105)
print(round(t, 5))
