import time
import numpy as np

stages = {}
t0 = time.monotonic()
k = 0
while time.monotonic() - t0 < 4.8:
    tmp = np.random.default_rng(k).random(1_500_000)
    stages[k] = np.sort(tmp[::-1])
    del tmp
    k += 1
    time.sleep(0.12)
print(len(stages))
