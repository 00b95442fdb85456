import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
g = np.random.default_rng(5)
index = None
hits = 0
N = int(T * 170)
for i in range(N):
    q = g.random((8, 24))
    if i == int(N * 0.7):
        index = [g.random((100, 24)) for _ in range(30)]
    if index is not None:
        hits += int((q @ index[i % 30].T > 8).sum())
    else:
        hits += int((q.sum(axis=1) > 13).sum())
    time.sleep(0.0053)
print(hits)
