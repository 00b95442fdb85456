import functools
import random
import time
import numpy as np


@functools.lru_cache(maxsize=32)
def tile(x, y):
    return np.full((128, 128), x * 1000.0 + y)


random.seed(5)
t0 = time.monotonic()
s = 0.0
while time.monotonic() - t0 < 3.0:
    s += tile(random.randrange(40), random.randrange(40))[0, 0]
    time.sleep(0.0005)
print(tile.cache_info().currsize)
