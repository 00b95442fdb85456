import time
import numpy as np

kept = []
t0 = time.monotonic()
nxt = t0
while (now := time.monotonic()) - t0 < 5.5:
    if now >= nxt:
        kept.append(np.full(12_500, now))
        nxt += 0.1
    np.sort(np.random.default_rng(1).random(3_000))
    time.sleep(0.001)
print(len(kept) > 30)
