"""Sweep simulation parameters on a process pool and report the best run of each round."""
import multiprocessing as mp
import time

import numpy as np


def simulate(seed):
    g = np.random.default_rng(seed)
    walk = np.cumsum(g.normal(size=400))
    path = [(i, float(v), f"s{seed}") for i, v in enumerate(walk[::2])]
    return {"seed": seed, "best": float(walk.max()), "path": path}


def main():
    history = []
    rounds = []
    with mp.Pool(2) as pool:
        for r in range(110):
            results = pool.map(simulate, range(r * 6, r * 6 + 6))
            history.append(results)
            best = max(history[-1], key=lambda x: x["best"])
            rounds.append((best["seed"], round(best["best"], 3)))
            time.sleep(0.062)
    print(len(rounds), max(rounds, key=lambda x: x[1]))


if __name__ == "__main__":
    main()
