import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Layer:
    def __init__(self, k, n):
        g = np.random.default_rng(k)
        self.w = g.standard_normal((n, n)).astype("f4") / n ** 0.5
        self.b = np.zeros(n, "f4")

    def __call__(self, x):
        return np.maximum(x @ self.w + self.b, 0)


class Model:
    def __init__(self):
        self.layers = []

    def load(self, count):
        for k in range(count):
            self.layers.append(Layer(k, 64))
            time.sleep(T / 3 / count)

    def predict(self, x):
        for l in self.layers:
            x = l(x)
        return x


m = Model()
m.load(110)
tot = 0.0
for i in range(int(T * 35)):
    tot += float(m.predict(np.ones((4, 64), "f4") * (i % 3)).mean())
    time.sleep(0.012)
print("ok", len(m.layers))
