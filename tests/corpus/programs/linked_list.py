import time
import numpy as np

head = None
n = 0
end = time.monotonic() + 3.4
while time.monotonic() < end:
    head = (np.full(3_000, n, float), head)
    n += 1
    time.sleep(0.002)
print(n > 0)
