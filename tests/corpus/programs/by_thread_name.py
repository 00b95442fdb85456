import threading
import time
import numpy as np

scratch = {}


def get_scratch(n):
    name = threading.current_thread().name
    if name not in scratch:
        scratch[name] = np.empty((n, 250))
    return scratch[name]


def work(n):
    s = get_scratch(n)
    s[:] = n
    get_scratch(n).sum()


t0 = time.monotonic()
while time.monotonic() - t0 < 4.1:
    ts = [threading.Thread(target=work, args=(80 + k,)) for k in range(2)]
    for t in ts:
        t.start()
    for t in ts:
        t.join()
    time.sleep(0.012)
print(len(scratch) > 0)
