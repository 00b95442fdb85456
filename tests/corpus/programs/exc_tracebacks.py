import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
failed = []


def solve(n):
    a = np.vander(np.linspace(0, 1, 30), 30)
    if n % 4 == 0:
        a[3] = a[5]
        raise ArithmeticError("row of job %d repeated" % n)
    return np.linalg.cond(a)


def work(n):
    try:
        return solve(n)
    except ArithmeticError as e:
        failed.append((n, e))
        return 0.0


ok = 0
for n in range(int(T * 200)):
    ok += work(n) > 0
    time.sleep(0.0045)
print(ok, len(failed))
