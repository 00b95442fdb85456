import time
import numpy as np


def attempt(i):
    work = np.arange(3_000) + i
    junk = [[k] for k in range(20)]
    saved = None
    try:
        raise ValueError(i)
    except ValueError as e:
        saved = e
    return work[0], len(junk)


end = time.monotonic() + 3.0
i = 0
while time.monotonic() < end:
    for _ in range(4):
        attempt(i)
        i += 1
    time.sleep(0.003)
print(i > 0)
