import time
import numpy as np

errors = []


def parse(i):
    block = np.arange(20_000, dtype=float) * i
    if i % 5 == 2:
        raise ValueError("bad block", i)
    return block[1]


t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.5:
    try:
        parse(i)
    except ValueError as e:
        errors.append(e)
    i += 1
    time.sleep(0.002)
print(len(errors) > 0)
