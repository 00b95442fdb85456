"""Assemble sparse stiffness matrices element by element on coarser and finer meshes and solve a heat problem on each."""
import time

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.linalg import cg

LOCAL = np.array(
    [[4.0, -1.0, -2.0, -1.0], [-1.0, 4.0, -1.0, -2.0], [-2.0, -1.0, 4.0, -1.0], [-1.0, -2.0, -1.0, 4.0]]
) / 6.0


def assemble(n, conductivity):
    rows, cols, vals = [], [], []
    for j in range(n):
        for i in range(n):
            a = j * (n + 1) + i
            nodes = np.array([a, a + 1, a + n + 2, a + n + 1])
            rows.append(np.repeat(nodes, 4))
            cols.append(np.concatenate([nodes] * 4))
            vals.append((LOCAL * conductivity[j, i]).ravel())
        time.sleep(0.012)
    size = (n + 1) ** 2
    full = coo_matrix((np.concatenate(vals), (np.concatenate(rows), np.concatenate(cols))), shape=(size, size))
    return csr_matrix(full)


def solve(matrix, n):
    size = matrix.shape[0]
    load = np.full(size, 1.0 / size)
    border = np.zeros((n + 1, n + 1), dtype=bool)
    border[0] = border[-1] = True
    penalty = csr_matrix((np.where(border.ravel(), 1e3, 0.0), (np.arange(size), np.arange(size))), shape=(size, size))
    x, _ = cg(matrix + penalty, load, maxiter=60)
    return float(x.max())


def main():
    rng = np.random.default_rng(10)
    for n in (30, 50, 70, 90, 60, 30):
        matrix = assemble(n, rng.uniform(0.5, 2.0, (n, n)))
        print("mesh", n, "nonzeros", matrix.nnz, "max", round(solve(matrix, n), 5))
        time.sleep(0.08)


if __name__ == "__main__":
    main()
