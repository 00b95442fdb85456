import queue
import threading
import time
import numpy as np

q = queue.Queue(maxsize=50)
end = time.monotonic() + 3.5


def produce():
    i = 0
    while time.monotonic() < end:
        try:
            q.put(np.ones((100, 100)) * i, timeout=0.1)
        except queue.Full:
            pass
        i += 1


th = threading.Thread(target=produce)
th.start()
s = 0.0
while th.is_alive() or not q.empty():
    try:
        s += q.get(timeout=0.1)[0, 0]
    except queue.Empty:
        pass
    time.sleep(0.004)
th.join()
print(s > 0)
