import itertools
import time
import numpy as np


def batches(n):
    data = np.random.default_rng(n).random((100, 500))
    for row in data:
        yield row * 2


t0 = time.monotonic()
n = 0
x = 0.0
while time.monotonic() - t0 < 3.0:
    for row in itertools.islice(batches(n), 7):
        x += row[0]
    n += 1
    time.sleep(0.002)
print(x > 0)
