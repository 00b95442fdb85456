"""Convergence study: Poisson problems on finer and finer grids; only the errors are kept."""
import sys
import time

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0


def laplacian(n):
    h = 1.0 / (n + 1)
    d = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n)) / h**2
    eye = sp.identity(n)
    return (sp.kron(d, eye) + sp.kron(eye, d)).tocsr()


def problem(n):
    x = np.linspace(0, 1, n + 2)[1:-1]
    xx, yy = np.meshgrid(x, x, indexing="ij")
    exact = np.sin(np.pi * xx) * np.sin(2 * np.pi * yy)
    rhs = 5 * np.pi**2 * exact
    return laplacian(n), rhs.ravel(), exact.ravel()


def solve(n):
    a, b, exact = problem(n)
    guess = exact + 0.01 * np.random.default_rng(n).normal(size=exact.size)
    u, info = spla.cg(a, b, x0=guess, rtol=1e-3, maxiter=20)
    err = np.abs(u - exact)
    return {"n": n, "max": float(err.max()), "l2": float(np.sqrt((err**2).mean()))}


def main():
    start = time.perf_counter()
    table = []
    while (t := time.perf_counter() - start) < T:
        n = int(24 + 180 * (t / T) ** 1.5)
        table.append(solve(n))
        time.sleep(0.003)
    finest = max(row["n"] for row in table)
    print("runs", len(table) > 1, "finest", finest > 24)


main()
