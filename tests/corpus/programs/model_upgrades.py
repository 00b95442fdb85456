"""Online learner: from time to time the serving model is replaced by a slightly wider one."""
import sys
import time
from dataclasses import dataclass, field

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
IN, OUT = 200, 10


@dataclass
class Net:
    w1: np.ndarray
    w2: np.ndarray
    version: int = 0
    stats: dict = field(default_factory=dict)

    @classmethod
    def fresh(cls, hidden, rng, version):
        w1 = rng.normal(0, IN**-0.5, size=(IN, hidden))
        w2 = rng.normal(0, hidden**-0.5, size=(hidden, OUT))
        return cls(w1, w2, version)

    def widen(self, extra, rng):
        new = Net.fresh(self.w1.shape[1] + extra, rng, self.version + 1)
        new.w1[:, :self.w1.shape[1]] = self.w1
        new.w2[:self.w2.shape[0]] = self.w2
        return new

    def train(self, x, y, lr=0.01):
        h = np.maximum(x @ self.w1, 0)
        err = h @ self.w2 - y
        g2 = h.T @ err / len(x)
        g1 = x.T @ ((err @ self.w2.T) * (h > 0)) / len(x)
        self.w1 -= lr * g1
        self.w2 -= lr * g2
        return float((err**2).mean())


def main():
    rng = np.random.default_rng(5)
    model = Net.fresh(256, rng, 0)
    start = time.perf_counter()
    losses = []
    while (t := time.perf_counter() - start) < T:
        x = rng.normal(size=(32, IN))
        y = np.tanh(x[:, :OUT])
        losses.append(model.train(x, y))
        if int(t / T * 20) > model.version:
            model = model.widen(16, rng)
        time.sleep(0.003)
    print("version", model.version, "finite", bool(np.isfinite(losses[-1])))


main()
