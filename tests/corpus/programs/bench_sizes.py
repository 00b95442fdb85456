import time
import numpy as np


def solve(n):
    a = np.add.outer(np.arange(n), np.arange(n)) * 1.0
    return float(a.trace())


times = []
for n in range(100, 2400, 50):
    t = time.perf_counter()
    solve(n)
    times.append(time.perf_counter() - t)
    time.sleep(0.05)
print(len(times))
