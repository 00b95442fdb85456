import threading
import time
import numpy as np

local = threading.local()
states = []


def job(i):
    local.buf = np.zeros(30_000)
    local.buf += i
    states.append(local.__dict__)


t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.2:
    t = threading.Thread(target=job, args=(i,))
    t.start()
    t.join()
    i += 1
    time.sleep(0.005)
print(len(states) > 0)
