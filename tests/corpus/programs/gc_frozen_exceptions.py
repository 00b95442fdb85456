import gc
import time
import numpy as np


def risky(i):
    payload = np.random.default_rng(i).random(15_000)
    err = None
    try:
        raise OSError(i)
    except OSError as e:
        err = e
    return payload[0]


for k in range(20):
    risky(k)
gc.collect()
gc.disable()
t0 = time.monotonic()
while time.monotonic() - t0 < 4.0:
    risky(k)
    k += 1
    time.sleep(0.005)
print(k > 20)
