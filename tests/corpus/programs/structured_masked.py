import time
import numpy as np

archive = []
dt = np.dtype([("t", "f8"), ("id", "i4"), ("v", "f4", 3)])
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.4:
    if i % 2:
        archive.append(np.zeros(1_500, dt))
    else:
        archive.append(np.ma.masked_less(np.arange(4_000.0), i))
    i += 1
    time.sleep(0.003)
