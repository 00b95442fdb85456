import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
calibrations = []
g = np.random.default_rng(0)
n = int(T * 250)
x = 0.0
for i in range(n):
    reading = g.standard_normal(200)
    x += float(reading.std())
    if i % 50 == 49:
        dark = np.zeros((300, 400))
        dark[::7] = x
        calibrations.append(dark)
    time.sleep(0.0035)
print(round(x, 4))
