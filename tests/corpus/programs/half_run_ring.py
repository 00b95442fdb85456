import collections
import time
import numpy as np

ring = collections.deque(maxlen=330)
for i in range(740):
    ring.append(np.arange(16_000) * 0.5 + i)
    time.sleep(0.005)
print(len(ring))
