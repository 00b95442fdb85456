import random
import time
import numpy as np

random.seed(6)
live = [np.ones(random.randrange(100, 12_000)) for _ in range(150)]
t0 = time.monotonic()
while time.monotonic() - t0 < 3.9:
    p = len(live) / 300
    if random.random() < p:
        k = random.randrange(len(live))
        live[k] = live[-1]
        live.pop()
    else:
        live.append(np.ones(random.randrange(100, 12_000)))
    time.sleep(0.001)
print(50 < len(live) < 280)
