import time
import numpy as np

kept = []
t0 = time.monotonic()
i = 0
while True:
    el = time.monotonic() - t0
    if el > 4.2:
        break
    r = np.random.default_rng(i).random(12_000)
    if el > 1.26:
        kept.append(r)
    i += 1
    time.sleep(0.003)
print(len(kept) > 0)
