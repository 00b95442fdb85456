"""Fountain of particles with numba: the arrays double until the fountain is in balance."""
import sys
import time

import numba
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0


@numba.njit(cache=True)
def advance(pos, vel, age, n, dt, limit):
    alive = 0
    for i in range(n):
        vel[i, 2] -= 9.81 * dt
        for k in range(3):
            pos[i, k] += vel[i, k] * dt
        age[i] += dt
        if age[i] < limit and pos[i, 2] > -5.0:
            pos[alive] = pos[i]
            vel[alive] = vel[i]
            age[alive] = age[i]
            alive += 1
    return alive


class Fountain:
    def __init__(self, cap):
        self.n = 0
        self.pos, self.vel, self.age = np.zeros((cap, 3)), np.zeros((cap, 3)), np.zeros(cap)

    def emit(self, rng, m):
        while self.n + m > len(self.age):
            cap = 2 * len(self.age)
            for name in ("pos", "vel", "age"):
                old = getattr(self, name)
                new = np.zeros((cap,) + old.shape[1:])
                new[:self.n] = old[:self.n]
                setattr(self, name, new)
        s = slice(self.n, self.n + m)
        self.pos[s], self.age[s] = 0.0, 0.0
        self.vel[s] = rng.normal([0, 0, 8.0], 1.0, size=(m, 3))
        self.n += m

    def image(self):
        hist, _, _ = np.histogram2d(self.pos[:self.n, 0], self.pos[:self.n, 2], bins=40)
        return hist


def main():
    rng = np.random.default_rng(9)
    advance(np.zeros((1, 3)), np.zeros((1, 3)), np.zeros(1), 1, 0.1, 1.0)
    f = Fountain(512)
    start = last = time.perf_counter()
    while (now := time.perf_counter()) - start < T:
        dt = (now - last) / T * 6.0          # six seconds of the fountain per run
        last = now
        f.emit(rng, int(12000 * dt) + 1)
        f.n = advance(f.pos, f.vel, f.age, f.n, dt, 1.5)
        density = f.image().max()
        time.sleep(0.003)
    print("particles", f.n > 0, "density", density > 0)


main()
