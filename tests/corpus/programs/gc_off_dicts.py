import gc
import time
import numpy as np

gc.disable()
end = time.monotonic() + 3.4
n = 0
while time.monotonic() < end:
    d = {"n": n}
    d["self"] = d
    d["v"] = np.ones(100)
    n += 1
    if n % 3 == 0:
        time.sleep(0.001)
