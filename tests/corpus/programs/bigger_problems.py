import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


def jacobi(n, sweeps=12):
    a = np.zeros((n, n))
    a[0] = 1
    for _ in range(sweeps):
        b = a.copy()
        b[1:-1, 1:-1] = (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]) / 4
        a = b
        time.sleep(0.0015)
    return float(a.sum())


steps = int(T * 40)
res = []
for k in range(steps):
    res.append(jacobi(20 + 300 * k // steps))
print(len(res), round(res[-1], 5))
