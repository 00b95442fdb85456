import time
import numpy as np

t0 = time.monotonic()
frames = []
for i in range(40):
    frames.append(np.full(125_000, float(i)))
    time.sleep(0.008)
offsets = [float(f.mean()) for f in frames]
del frames, i

total = 0.0
while time.monotonic() - t0 < 3.6:
    for o in offsets:
        total += (o * 1.0001) % 7
    time.sleep(0.002)
print(round(total) > 0)
