import sys
import time
import math
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
N = int(T * 170)
frontier = {}
k = 0
seen = 0
for i in range(N):
    want = int(400 * math.sin(math.pi * i / N) ** 2) + 5
    while len(frontier) < want:
        frontier[k] = np.full(300, k)
        k += 1
    while len(frontier) > want:
        frontier.pop(next(iter(frontier)))
        seen += 1
    time.sleep(0.0055)
print(seen > 0, len(frontier))
