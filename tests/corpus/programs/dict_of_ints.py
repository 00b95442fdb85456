import time
import numpy as np

seen = {}
end = time.monotonic() + 3.5
i = 0
while time.monotonic() < end:
    block = np.arange(i, i + 300)
    for v in block.tolist():
        seen[v + 10_000_000] = v * 3 + 1_000
    i += 300
    time.sleep(0.001)
print(len(seen) > 0)
