import threading
import time
from concurrent.futures import ThreadPoolExecutor
import numpy as np

local = threading.local()


def buffer(n):
    b = getattr(local, "b", None)
    if b is None or b.size < n:
        b = local.b = np.empty(n)
    return b[:n]


def job(i):
    n = min(2_000 + 1_200 * i, 150_000)
    b = buffer(n - (i * 37) % 500)
    b[:] = i
    time.sleep(0.003)
    return float(b.mean())


def main():
    end = time.monotonic() + 3.6
    i = 0
    s = 0.0
    with ThreadPoolExecutor(3) as ex:
        while time.monotonic() < end:
            s += sum(ex.map(job, range(i, i + 12)))
            i += 12
    print(s > 0)


main()
