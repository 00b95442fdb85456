# ring buffer (oldest out) of arrays: full at 67 % of the run
import time, heapq
import numpy as np
rng = np.random.default_rng(16)
CAP = 1600
buf = []; n = 0; t0 = time.monotonic(); s = 0.0
for step in range(800):
    for _ in range(3):
        item = (float(rng.random()), n, rng.standard_normal((32, 32)).astype(np.float32)); n += 1
        if len(buf) < CAP: buf.append(item)
        else: buf.__setitem__(n % CAP, item)
    if len(buf) > 64:
        batch = np.stack([buf[j][2] for j in rng.integers(0, len(buf), 32)])
        s += float(batch.mean())
    time.sleep(max(0, t0 + step * 0.01 - time.monotonic()))
print(s, len(buf))
