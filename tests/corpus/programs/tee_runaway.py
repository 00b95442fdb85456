import itertools
import time
import numpy as np


def source():
    i = 0
    while True:
        yield np.sqrt(np.arange(7_000) + i)
        i += 1


fast, slow = itertools.tee(source())
end = time.monotonic() + 2.9
s = 0.0
while time.monotonic() < end:
    s += next(fast)[0]
    time.sleep(0.003)
print(next(slow)[0] == 0.0)
