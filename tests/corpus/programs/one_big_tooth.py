import time
import numpy as np

buf = []
t0 = time.monotonic()
while time.monotonic() - t0 < 3.5:
    buf.append(np.zeros(10_000) + 1)
    time.sleep(0.006)
total = sum(float(b[0]) for b in buf)
buf.clear()
print(total > 0)
