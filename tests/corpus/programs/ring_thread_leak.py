import threading
import time
import numpy as np

N = 40
ring = [None] * N
errors = []
lock = threading.Lock()
end = time.monotonic() + 4.2


def acquire(i):
    return np.zeros(250_000) + i


def worker(k):
    i = k
    while time.monotonic() < end:
        a = acquire(i)
        with lock:
            ring[i % N] = a
            if i % 15 < 2:
                errors.append(a)
        i += 2
        time.sleep(0.02)


ts = [threading.Thread(target=worker, args=(k,)) for k in range(2)]
for t in ts:
    t.start()
for t in ts:
    t.join()
