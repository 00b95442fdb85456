import io
import os
import sys
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class MLP:
    def __init__(self, sizes, seed=1):
        g = np.random.default_rng(seed)
        self.w = [g.standard_normal((a, b)) / np.sqrt(a) for a, b in zip(sizes, sizes[1:])]

    def forward(self, x):
        acts = [x]
        for w in self.w:
            x = np.tanh(x @ w)
            acts.append(x)
        return acts

    def step(self, x, y, lr=0.01):
        acts = self.forward(x)
        delta = acts[-1] - y
        for i in range(len(self.w) - 1, -1, -1):
            delta = delta * (1 - acts[i + 1] ** 2)
            grad = acts[i].T @ delta / len(x)
            delta = delta @ self.w[i].T
            self.w[i] -= lr * grad
        return float(((acts[-1] - y) ** 2).mean())


def load():
    g = np.random.default_rng(0)
    shards = [g.standard_normal((500, 30)) for _ in range(12)]
    x = np.concatenate(shards)
    return x, np.sin(x[:, :5])


x, y = load()
model = MLP([30, 64, 64, 5])
losses = []
n = int(T * 60)
for it in range(n):
    idx = np.random.default_rng(it).integers(0, len(x), 128)
    losses.append(model.step(x[idx], y[idx]))
    time.sleep(0.008)
errs = []
for it in range(int(T * 40)):
    sl = slice(it * 50 % 5000, it * 50 % 5000 + 600)
    errs.append(float(np.abs(model.forward(x[sl])[-1] - y[sl]).mean()))
    time.sleep(0.004)
buf = None
for it in range(int(T * 15)):
    buf = io.BytesIO()
    np.savez_compressed(buf, *model.w)
    time.sleep(0.01)
print("%.4f %.4f %d" % (losses[-1], np.mean(errs), len(model.w)))
