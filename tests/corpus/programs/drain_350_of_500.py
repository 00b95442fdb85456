import time
import numpy as np

backlog = []
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 4.0:
    backlog.append(np.full(1_500, i, float))
    i += 1
    if i % 500 == 0:
        del backlog[:350]
    if i % 2 == 0:
        time.sleep(0.001)
print(len(backlog) > 0)
