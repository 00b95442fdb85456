import sys, time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Evaluator:
    def __init__(self, w):
        self.w = w
        self.history = []

    def __call__(self, batch):
        logits = batch @ self.w
        logits -= logits.max(axis=1, keepdims=True)
        p = np.exp(logits)
        p /= p.sum(axis=1, keepdims=True)
        self.history.append(("batch", p))
        return float(p.max(axis=1).mean())


def train(w, steps):
    g = np.random.default_rng(5)
    for _ in range(steps):
        x = g.standard_normal((64, 50))
        w -= 0.001 * (x.T @ (x @ w))
        time.sleep(0.01)


w = np.random.default_rng(1).standard_normal((50, 10)) * 0.1
train(w, int(T * 20))
ev = Evaluator(w)
g = np.random.default_rng(9)
conf = []
for _ in range(int(T * 90)):
    conf.append(ev(g.standard_normal((200, 50))))
    time.sleep(0.008)
print(len(conf), round(float(np.mean(conf)), 5))
