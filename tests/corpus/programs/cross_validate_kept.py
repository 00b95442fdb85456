"""Feature screening by cross validation; the results are kept with all their estimators."""
import sys
import time

import numpy as np
from sklearn.model_selection import cross_validate
from sklearn.neighbors import KNeighborsClassifier

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
ROWS, COLS = 450, 40


def make_data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, COLS))
    y = (x[:, 3] + 0.5 * x[:, 7] + rng.normal(0, 0.5, ROWS) > 0).astype(int)
    return x, y


class Screening:
    def __init__(self, x, y):
        self.x, self.y = x, y
        self.results = []

    def try_columns(self, cols):
        est = KNeighborsClassifier(5, algorithm="brute")
        res = cross_validate(est, self.x[:, cols], self.y, cv=3, return_estimator=True)
        res["cols"] = cols
        self.results.append(res)
        return float(res["test_score"].mean())

    def best(self):
        return max(self.results, key=lambda r: r["test_score"].mean())["cols"]


def main():
    x, y = make_data()
    screen = Screening(x, y)
    rng = np.random.default_rng(1)
    start = time.perf_counter()
    scores = []
    while time.perf_counter() - start < T:
        cols = np.sort(rng.choice(COLS, 16, replace=False))
        scores.append(screen.try_columns(cols))
        time.sleep(0.003)
    print("tried", len(scores) > 0, "best has", screen.best().size)


main()
