import time
import numpy as np

t0 = time.monotonic()
rounds = 0
while time.monotonic() - t0 < 3.6:
    a = np.empty(0)
    while a.size < 60_000:
        a = np.append(a, np.arange(400.0))
        time.sleep(0.0008)
    rounds += a.size > 0
print(rounds > 0)
