import time
import numpy as np

points = []
end = time.monotonic() + 3.6
i = 0
while time.monotonic() < end:
    for _ in range(20):
        points.append(np.array([i * 0.5]))
        i += 1
    time.sleep(0.0015)
print(len(points) > 0)
