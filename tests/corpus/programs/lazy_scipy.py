import time
import numpy as np

t0 = time.monotonic()
x = np.linspace(0, 10, 5_000)
s = 0.0
while time.monotonic() - t0 < 1.0:
    s += float(np.sin(x * s).sum())
    time.sleep(0.002)

from scipy import interpolate

t1 = time.monotonic()
while time.monotonic() - t1 < 1.7:
    y = np.cos(x + s)
    f = interpolate.interp1d(x[::50], y[::50])
    s += float(f(5.0))
    time.sleep(0.003)
print(s == s)
