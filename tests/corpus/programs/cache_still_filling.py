import functools
import time
import numpy as np


@functools.lru_cache(maxsize=4_000)
def table(k):
    return np.arange(3_000) * k


for k in range(1_900):
    table(k)
    table(k // 2)
    time.sleep(0.0015)
print(table.cache_info().currsize)
