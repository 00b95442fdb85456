import sys
import time
import random
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Planner:
    def __init__(self):
        self.work = {}

    def plan(self, shape):
        w = self.work.get(shape)
        if w is None:
            h, k = shape
            w = self.work[shape] = {"in": np.empty(shape), "fft": np.empty((h, k // 2 + 1), complex),
                                    "mask": np.hypot(*np.indices((h, k // 2 + 1))) < h / 3}
        return w

    def lowpass(self, a):
        w = self.plan(a.shape)
        w["in"][:] = a
        w["fft"][:] = np.fft.rfft2(w["in"])
        w["fft"] *= w["mask"]
        return np.fft.irfft2(w["fft"], s=a.shape)


p, r, s = Planner(), random.Random(3), 0.0
sizes = [(32 * i, 32 * j) for i in (1, 2, 3) for j in (1, 2, 3)]
N = int(T * 120)
for i in range(N):
    known = max(1, min(9, 1 + i * 36 // N))
    a = np.random.default_rng(i).random(sizes[r.randrange(known)])
    s += float(p.lowpass(a).std())
    time.sleep(0.0075)
print(len(p.work), round(s, 4))
