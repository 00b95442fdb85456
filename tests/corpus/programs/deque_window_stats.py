import collections
import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
chan = [collections.deque(maxlen=48) for _ in range(4)]
g = np.random.default_rng(1)
z = 0.0
for i in range(int(T * 190)):
    x = g.standard_normal(1024)
    chan[i % 4].append(np.abs(np.fft.rfft(x)))
    if i % 25 == 0:
        z += float(np.median(np.stack(chan[0]), axis=0).sum())
    time.sleep(0.0048)
print(round(z, 4))
