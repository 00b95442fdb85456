import random
import time
import numpy as np

random.seed(11)
buf = []
t0 = time.monotonic()
best = 0
while time.monotonic() - t0 < 3.7:
    buf.append(np.zeros(random.randrange(100, 20_000)))
    if random.random() < 1 / 60:
        best = max(best, len(buf))
        buf = []
    time.sleep(0.0015)
print(best > 0)
