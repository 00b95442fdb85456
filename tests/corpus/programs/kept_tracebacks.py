"""Errors are kept for a final report; each exception holds its frames and their locals."""
import random
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(21)


class SolverError(ValueError):
    pass


def assemble(n, scale):
    a = np.zeros((n, n))
    a[np.arange(n), np.arange(n)] = scale
    return a


def solve(n, scale):
    a = assemble(n, scale)
    b = np.ones(n)
    if scale < 0.08:
        raise SolverError("singular: scale %.3f" % scale)
    return b / a.diagonal()


def main():
    failures = []
    total = 0.0
    runs = 0
    stop = time.monotonic() + T
    while time.monotonic() < stop:
        try:
            total += solve(rng.randint(60, 140), rng.random()).sum()
        except SolverError as err:
            failures.append((runs, err))
        runs += 1
        time.sleep(0.004)
    print("runs", runs, "failed", len(failures), "total %.1f" % total)
    if failures:
        print("first:", failures[0][1])


main()
