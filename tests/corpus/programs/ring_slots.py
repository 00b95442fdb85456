import time
import numpy as np

slots = [None] * 64
i = 0
t0 = time.monotonic()
while time.monotonic() - t0 < 3.0:
    slots[i % 64] = np.random.default_rng(i).random(10_000)
    i += 1
    time.sleep(0.001)
print(sum(s is not None for s in slots))
