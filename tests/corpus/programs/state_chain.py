"""Rigid body with an ndarray subclass; each state remembers the one before it (for Verlet)."""
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
G = np.array([0.0, 0.0, -9.81])


class State(np.ndarray):
    """x, y, z with a time stamp and the previous state."""

    def __new__(cls, xyz, t=0.0, prev=None):
        obj = np.array(xyz, dtype=float).view(cls)
        obj.t, obj.prev = t, prev
        return obj

    def __array_finalize__(self, obj):
        self.t = getattr(obj, "t", 0.0)
        self.prev = None

    def velocity(self, dt):
        return np.asarray(self - self.prev) / dt


def acceleration(x, v):
    drag = -0.05 * v * np.linalg.norm(v)
    spring = -2.0 * np.asarray(x)
    return G + drag + spring


def step(state, dt):
    v = state.velocity(dt)
    new = 2 * np.asarray(state) - np.asarray(state.prev) + acceleration(state, v) * dt**2
    return State(new, state.t + dt, state)


def main():
    dt = 0.001
    first = State([1.0, 0.0, 0.0])
    state = State([1.0, 0.001, 0.0], dt, first)
    energy = []
    start = time.perf_counter()
    while time.perf_counter() - start < T:
        for _ in range(5):
            state = step(state, dt)
        v = state.velocity(dt)
        energy.append(0.5 * float(v @ v) + float(state @ state))
        time.sleep(0.002)
    # unlink in a loop: a long chain must not be freed by recursion
    finite = bool(np.isfinite(state).all())
    node = state
    while node is not None:
        node.prev, node = None, node.prev
    print("finite", finite, "steps", len(energy) > 0)


main()
