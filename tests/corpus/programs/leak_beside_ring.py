import collections
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
ring = collections.deque(maxlen=200)
interesting = []


def grab(i):
    n = 3000 if i % 10 else 900
    return np.full(n, i % 200, dtype=np.uint16)


for i in range(int(T * 420)):
    f = grab(i)
    if len(f) == 900:
        interesting.append(f)
    else:
        ring.append(f)
    if i % 3 == 0:
        time.sleep(0.0057)
print(len(ring), sum(int(f[0]) for f in interesting) % 1000)
