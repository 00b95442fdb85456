import math
import time
import numpy as np

held = []
n = 960
for i in range(n):
    want = int(100 - 90 * math.cos(2 * math.pi * 4 * i / n))
    while len(held) < want:
        held.append(np.zeros(15_000) + i)
    while len(held) > want:
        held.pop(0)
    time.sleep(0.004)
print(len(held))
