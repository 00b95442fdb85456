import os
import sys
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import time
import numpy as np
from sklearn.tree import DecisionTreeRegressor

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class OnlineEnsemble:
    def __init__(self):
        self.members = []

    def partial_fit(self, X, y):
        m = DecisionTreeRegressor(max_depth=7, random_state=len(self.members))
        self.members.append((m.fit(X, y), X))
        return self

    def predict(self, X):
        return np.mean([m.predict(X) for m, _ in self.members[-5:]], axis=0)


g = np.random.default_rng(0)
ens = OnlineEnsemble()
err = []
for w in range(int(T * 45)):
    X = g.standard_normal((150, 6))
    y = X[:, 0] ** 2 + X[:, 1]
    ens.partial_fit(X, y)
    err.append(float(np.abs(ens.predict(X) - y).mean()))
    time.sleep(0.014)
print(len(ens.members), round(err[-1], 5))
