import time
import numpy as np


def phase(name, n, size):
    acc = []
    for i in range(n):
        acc.append(np.full(size, i, float))
        time.sleep(0.006)
    return name, sum(float(a[0]) for a in acc)


out = [phase("ingest", 180, 20_000), phase("clean", 150, 30_000), phase("fit", 200, 10_000)]
end = time.monotonic() + 0.6
while time.monotonic() < end:
    sum(range(1_000))
    time.sleep(0.002)
print(len(out))
