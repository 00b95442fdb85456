import time
import numpy as np


class Flaky(Exception):
    pass


count = 0


def fetch(i):
    global count
    count += 1
    data = np.ones(30_000) * i
    if count % 3 == 0:
        raise Flaky(f"no answer for {i}")
    return data


def with_retry(i, tries=5):
    for k in range(tries):
        try:
            return fetch(i)
        except Flaky:
            time.sleep(0.002)
    raise RuntimeError


t0 = time.monotonic()
i = 0
s = 0.0
while time.monotonic() - t0 < 2.7:
    s += with_retry(i).sum()
    i += 1
    time.sleep(0.001)
print(s > 0)
