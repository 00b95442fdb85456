import functools
import random
import time
import numpy as np


def read_block(n):
    return np.random.default_rng(n).random(30_000)


@functools.lru_cache(100)
def cached(n):
    return read_block(n)


audit = []
random.seed(3)
t0 = time.monotonic()
k = 0
while time.monotonic() - t0 < 3.9:
    cached(random.randrange(400))
    k += 1
    if k % 6 == 0:
        audit.append(read_block(k))
    time.sleep(0.002)
print(len(audit) > 0)
