import sys
import time
import numpy as np
from numba import njit

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


@njit
def life(a, b):
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            s = 0
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    if di or dj:
                        s += a[(i + di) % n, (j + dj) % m]
            b[i, j] = 1 if s == 3 or (s == 2 and a[i, j]) else 0


@njit
def label_rows(a):
    out = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        out[i] = a[i].sum()
    return out


a = (np.random.default_rng(0).random((150, 150)) < 0.3).astype(np.uint8)
b = np.empty_like(a)
tot = 0.0
for step in range(int(T * 110)):
    life(a, b)
    a, b = b, a
    tot += label_rows(a).max()
    time.sleep(0.007)
print(int(a.sum()), tot)
