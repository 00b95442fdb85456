import random
import time
import numpy as np

random.seed(4)
cells = np.empty(64, dtype=object)
for i in range(64):
    cells[i] = np.zeros(20_000)
    time.sleep(0.003)
end = time.monotonic() + 3.2
while time.monotonic() < end:
    k = random.randrange(64)
    cells[k] = cells[k] + 1.0
    time.sleep(0.002)
print(len(cells))
