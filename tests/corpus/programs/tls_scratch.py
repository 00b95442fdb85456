import threading
import time
import numpy as np

local = threading.local()


def scratch():
    try:
        return local.buf
    except AttributeError:
        local.buf = np.empty(150_000)
        return local.buf


def work(k, end):
    while time.monotonic() < end:
        b = scratch()
        b[:] = k
        np.sqrt(b, out=b)
        time.sleep(0.004)


end = time.monotonic() + 3.1
ts = [threading.Thread(target=work, args=(k, end)) for k in range(4)]
for t in ts:
    t.start()
for t in ts:
    t.join()
