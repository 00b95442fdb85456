import collections
import time
import numpy as np

window = collections.deque(maxlen=1500)
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 4.0:
    for _ in range(20):
        window.append(np.arange(30) * 0.5 + i)
        i += 1
    time.sleep(0.004)
print(len(window))
