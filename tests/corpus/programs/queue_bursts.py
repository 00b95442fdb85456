import queue
import threading
import time
import numpy as np


class Mail:
    def __init__(self):
        self.q = queue.Queue()
        self.done = threading.Event()
        self.n = 0

    def reader(self):
        while not (self.done.is_set() and self.q.empty()):
            try:
                a = self.q.get(timeout=0.05)
            except queue.Empty:
                continue
            self.n += int(a[0] >= 0)
            del a
            time.sleep(0.005)


m = Mail()
th = threading.Thread(target=m.reader)
th.start()
for burst in range(9):
    for k in range(40):
        m.q.put(np.full(25_000, burst + k, float))
    time.sleep(0.4)
m.done.set()
th.join()
print(m.n)
