import time
import numpy as np

slots = [None] * 500
for i in range(500):
    slots[i] = np.full(6_000, i, float)
    time.sleep(0.007)
print(sum(s is not None for s in slots))
