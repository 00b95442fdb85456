"""Compute portfolio risk with covariance matrices remembered by identity of the return matrix they belong to."""
import time

import numpy as np


class RiskEngine:
    def __init__(self):
        self._known = {}
        self.hits = 0

    def covariance(self, returns):
        entry = self._known.get(id(returns))
        if entry is not None and entry[0] is returns:
            self.hits += 1
            return entry[1]
        centred = returns - returns.mean(axis=0)
        cov = centred.T @ centred / (len(returns) - 1)
        self._known[id(returns)] = (returns, cov)
        return cov

    def volatility(self, returns, weights):
        return float(np.sqrt(weights @ self.covariance(returns) @ weights))

    def tail(self, returns, weights):
        scale = float(np.sqrt(np.diag(self.covariance(returns)).mean()))
        return float(np.quantile(returns @ weights, 0.01)) / scale


def simulate(rng, day):
    shocks = rng.standard_t(4, (120, 60)) * 0.01
    return shocks


def main():
    rng = np.random.default_rng(37)
    engine = RiskEngine()
    weights = np.full(60, 1 / 60)
    base = simulate(rng, 0)
    worst = 0.0
    for day in range(320):
        returns = base if day % 4 == 0 else simulate(rng, day)
        vol = engine.volatility(returns, weights)
        worst = min(worst, engine.tail(returns, weights) * vol)
        time.sleep(0.014)
    print("hits", engine.hits, "worst", round(worst, 5))


if __name__ == "__main__":
    main()
