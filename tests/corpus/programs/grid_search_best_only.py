"""Nightly model selection: a grid search for each data set, only the best pipeline is deployed."""
import pickle
import sys
import time

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0


def dataset(day):
    rng = np.random.default_rng(day)
    x = rng.normal(size=(400, 20))
    y = np.sin(x[:, 0]) + x[:, 1] * 0.5 + rng.normal(0, 0.1, 400)
    return x, y


def search(x, y):
    candidates = [
        (make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 1.0]}),
        (KNeighborsRegressor(), {"n_neighbors": [3, 9]}),
    ]
    best = None
    for est, grid in candidates:
        gs = GridSearchCV(est, grid, cv=KFold(3), scoring="neg_mean_squared_error")
        gs.fit(x, y)
        if best is None or gs.best_score_ > best[0]:
            best = (float(gs.best_score_), gs.best_estimator_)
    return best


def main():
    deployed = {}
    log = []
    start = time.perf_counter()
    day = 0
    while time.perf_counter() - start < T:
        x, y = dataset(day)
        score, est = search(x, y)
        deployed["current"] = pickle.dumps(est)
        model = pickle.loads(deployed["current"])
        log.append((day, score, float(model.predict(x[:5]).mean())))
        day += 1
        time.sleep(0.003)
    print("days", len(log) > 0, "deployed", list(deployed))


main()
