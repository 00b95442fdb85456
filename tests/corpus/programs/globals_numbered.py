import time
import numpy as np

i = 0
t0 = time.monotonic()
while time.monotonic() - t0 < 3.0:
    globals()[f"v{i}"] = np.linspace(0, 1, 6_000) * i
    i += 1
    time.sleep(0.003)
print(v0.size)
