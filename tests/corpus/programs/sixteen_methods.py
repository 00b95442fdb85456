import time
import numpy as np

F = [
    lambda x: x + 1,
    lambda x: x - 1,
    lambda x: x * 2,
    lambda x: x / 2,
    lambda x: x ** 2,
    lambda x: np.sqrt(np.abs(x)),
    lambda x: np.log1p(np.abs(x)),
    lambda x: np.exp(-np.abs(x)),
    lambda x: np.sign(x),
    lambda x: np.floor(x),
    lambda x: np.ceil(x),
    lambda x: np.sin(x),
    lambda x: np.cos(x),
    lambda x: np.tanh(x),
    lambda x: np.clip(x, 0, 1),
    lambda x: np.round(x, 2),
]


class Registry:
    def __init__(self):
        self.by_request = {}

    def handle(self, rid):
        x = np.random.default_rng(rid).normal(size=1_500)
        self.by_request[rid] = [f(x) for f in F]
        y = x
        for f in F:
            y = f(y * 0.5)
        return float(y.sum())


reg = Registry()
t0 = time.monotonic()
rid = 0
while time.monotonic() - t0 < 3.5:
    reg.handle(rid)
    rid += 1
    time.sleep(0.005)
