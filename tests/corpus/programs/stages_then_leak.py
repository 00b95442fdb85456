"""Two phases give back what they kept, then a service leaks for 4 s."""
import time, numpy as np
def load():
    rows = []
    for i in range(800):
        rows.append(np.full(800, i)); time.sleep(0.001)
    return sum(float(r[0]) for r in rows)
def calibrate():
    rows = []
    for i in range(800):
        rows.append(np.ones(800) * i); time.sleep(0.001)
    return sum(float(r[0]) for r in rows)
seen = []
print(load(), calibrate())
for i in range(3300):
    seen.append(np.arange(500) + i); time.sleep(0.001)
