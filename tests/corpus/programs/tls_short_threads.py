import threading
import time
import numpy as np


class Local(threading.local):
    def __init__(self):
        self.work = np.zeros(50_000)


local = Local()


def job(i):
    local.work += i
    local.work.sum()


t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.4:
    ts = [threading.Thread(target=job, args=(i + k,)) for k in range(3)]
    for t in ts:
        t.start()
    for t in ts:
        t.join()
    i += 3
    time.sleep(0.005)
print(i > 0)
