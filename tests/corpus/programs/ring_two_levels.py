import time
from collections import deque
import numpy as np

fine, coarse = deque(maxlen=300), deque(maxlen=100)
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 4.4:
    fine.append(np.cos(np.arange(4_000) * 1e-3 * i))
    if i % 3 == 0:
        coarse.append(np.mean(list(fine)[-3:], axis=0))
    i += 1
    time.sleep(0.002)
print(len(fine), len(coarse))
