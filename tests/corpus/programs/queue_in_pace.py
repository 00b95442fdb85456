import queue
import threading
import time
import numpy as np

q = queue.Queue()
total = 0.0


def consume():
    global total
    while (a := q.get()) is not None:
        total += a.mean()


t = threading.Thread(target=consume)
t.start()
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.0:
    q.put(np.arange(12_000) + i)
    i += 1
    time.sleep(0.002)
q.put(None)
t.join()
print(total > 0)
