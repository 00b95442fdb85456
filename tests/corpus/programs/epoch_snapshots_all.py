import copy
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Net:
    def __init__(self):
        g = np.random.default_rng(3)
        self.params = {"w%d" % i: g.standard_normal((50, 60)) * 0.1 for i in range(4)}
        self.params["b"] = np.zeros(60)

    def fit_epoch(self, e):
        for step in range(10):
            g = np.random.default_rng(e * 100 + step)
            x = g.standard_normal((32, 50))
            for k, p in self.params.items():
                if p.ndim == 2:
                    p -= 1e-3 * (x.T @ (x @ p))
            time.sleep(0.0038)
        return float(np.abs(self.params["w0"]).mean())


class EarlyStopping:
    def __init__(self, patience=10 ** 9):
        self.states = []
        self.best = 1e9
        self.patience = patience

    def update(self, score, net):
        self.states.append((score, copy.deepcopy(net.params)))
        self.best = min(score, self.best)
        return len(self.states) > self.patience


net, es = Net(), EarlyStopping()
for epoch in range(int(T * 20)):
    if es.update(net.fit_epoch(epoch), net):
        break
print("%.6f" % es.best)
