import functools
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Pricer:
    def __init__(self, n=220):
        self.grid = np.linspace(0.1, 3, n)

    @functools.lru_cache(maxsize=None)
    def curve(self, rate):
        return np.exp(-self.grid * rate)

    def price(self, rate, notional):
        return float((self.curve(rate) * notional).sum())


p = Pricer()
g = np.random.default_rng(7)
r, v = 0.02, 0.0
for t in range(int(T * 300)):
    r = abs(r + 0.001 * float(g.standard_normal()))
    v += p.price(r, 100)
    time.sleep(0.0028)
print(round(v, 4))
