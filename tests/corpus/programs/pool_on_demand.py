import contextlib
import queue
import threading
import time
import numpy as np


class Pool:
    def __init__(self):
        self._q = queue.LifoQueue()

    @contextlib.contextmanager
    def buffer(self):
        try:
            b = self._q.get_nowait()
        except queue.Empty:
            b = np.zeros(100_000)
        try:
            yield b
        finally:
            self._q.put(b)


def worker(pool, stop):
    while time.monotonic() < stop:
        with pool.buffer() as b:
            b[:] = b + 1.0
            time.sleep(0.004)


pool = Pool()
stop = time.monotonic() + 3.2
ts = [threading.Thread(target=worker, args=(pool, stop)) for _ in range(12)]
for t in ts:
    t.start()
for t in ts:
    t.join()
print(pool._q.qsize() <= 12)
