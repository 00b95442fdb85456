import queue
import threading
import time
import numpy as np

q = queue.Queue()
end = time.monotonic() + 4.0


def producer():
    i = 0
    while time.monotonic() < end:
        q.put(np.arange(10_000) * i)
        i += 1
        time.sleep(0.002)


def consumer():
    while time.monotonic() < end:
        a = q.get()
        a.sum()
        time.sleep(0.008)


ts = [threading.Thread(target=producer), threading.Thread(target=consumer)]
for t in ts:
    t.start()
for t in ts:
    t.join()
print(q.qsize() > 0)
