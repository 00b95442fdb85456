import atexit
import time
import numpy as np


def cleanup(scratch, name):
    scratch[:] = 0


def job(i):
    scratch = np.empty(6_250)
    scratch[:] = i
    atexit.register(cleanup, scratch, f"job {i}")
    return scratch.sum()


end = time.monotonic() + 2.9
i = 0
while time.monotonic() < end:
    job(i)
    i += 1
    time.sleep(0.003)
print("bye")
