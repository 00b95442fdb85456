"""A tiny autograd: keeping `loss` instead of `float(loss)`."""
import sys
import time
import numpy as np


class Var:
    __slots__ = ("data", "parents", "back", "grad")

    def __init__(self, data, parents=(), back=None):
        self.data = data
        self.parents = parents
        self.back = back
        self.grad = None

    def __matmul__(self, o):
        return Var(self.data @ o.data, (self, o), lambda g: (g @ o.data.T, self.data.T @ g))

    def tanh(self):
        t = np.tanh(self.data)
        return Var(t, (self,), lambda g: (g * (1 - t * t),))

    def sq_mean(self):
        return Var(np.array((self.data ** 2).mean()), (self,), lambda g: (g * 2 * self.data / self.data.size,))

    def backward(self):
        self.grad = np.ones_like(self.data)
        todo = [self]
        while todo:
            v = todo.pop()
            if v.back is None:
                continue
            for p, g in zip(v.parents, v.back(v.grad)):
                p.grad = g
                todo.append(p)


def main(seconds):
    g = np.random.default_rng(0)
    w1, w2 = Var(g.standard_normal((20, 32)) * .3), Var(g.standard_normal((32, 3)) * .3)
    losses = []
    for step in range(int(seconds * 120)):
        x = Var(g.standard_normal((100, 20)))
        loss = ((x @ w1).tanh() @ w2).sq_mean()
        loss.backward()
        for w in (w1, w2):
            w.data -= 0.05 * w.grad
            w.grad = None
        losses.append(loss)
        time.sleep(0.006)
    print("last loss %.6f" % float(losses[-1].data))


main(float(sys.argv[1]) if len(sys.argv) > 1 else 4.0)
