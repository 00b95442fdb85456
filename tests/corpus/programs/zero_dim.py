import time
import numpy as np

metrics = {}


def record(step, value):
    metrics[step] = np.asarray(value)


end = time.monotonic() + 4.0
step = 0
while time.monotonic() < end:
    for _ in range(12):
        record(step, step * 0.1)
        step += 1
    np.ones(100).sum()
    time.sleep(0.001)
print(len(metrics) > 0)
