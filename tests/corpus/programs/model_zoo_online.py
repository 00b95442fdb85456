import time
import numpy as np


class Linear:
    def __init__(self, d):
        self.w = np.zeros(d)
        self.m = np.zeros(d)

    def update(self, x, y):
        g = x.T @ (x @ self.w - y) / len(y)
        self.m *= 0.9
        self.m += g
        self.w -= 0.01 * self.m


def main():
    zoo = {name: Linear(d) for name, d in zip("abcdef", (10, 50, 100, 200, 400, 800))}
    rng = np.random.default_rng(4)
    t0 = time.monotonic()
    while time.monotonic() - t0 < 3.8:
        for m in zoo.values():
            x = rng.normal(size=(64, m.w.size))
            m.update(x, x[:, 0])
        time.sleep(0.004)
    print(len(zoo))


main()
