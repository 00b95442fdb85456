import functools
import random
import time
import numpy as np


@functools.cache
def basis(a, b):
    x = np.linspace(0, 1, 6_000)
    return x ** a * (1 - x) ** b


random.seed(1)
t0 = time.monotonic()
s = 0.0
while time.monotonic() - t0 < 3.5:
    for _ in range(3):
        s += basis(random.randrange(12), random.randrange(12))[3000]
    time.sleep(0.002)
print(basis.cache_info().currsize)
