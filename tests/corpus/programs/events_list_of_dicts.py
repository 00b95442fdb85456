import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
AUDIT = []


def handle(i):
    x = np.arange(300) * i
    AUDIT.append({
        "id": i, "user": "user-%d" % (i % 37), "path": "/api/items/%d" % i,
        "ms": float(x.mean()), "tags": ["a%d" % i, "b%d" % i],
    })
    return x.max()


m = 0
for i in range(int(T * 250)):
    for j in range(12):
        m = max(m, int(handle(i * 12 + j)))
    time.sleep(0.0035)
print(m, len(AUDIT))
