import time
import numpy as np

lines = []
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.3:
    np.arange(1_000).sum()
    for _ in range(10):
        lines.append(f"{i:08d}" + chr(97 + i % 26) * 1_000)
        i += 1
    time.sleep(0.002)
print(len(lines) > 0)
