import threading
import time
import numpy as np


class Arena:
    def __init__(self):
        self.lock = threading.Lock()
        self.idle = []
        self.in_use = {}
        self.n = 0

    def acquire(self):
        with self.lock:
            b = self.idle.pop() if self.idle else np.ones(50_000)
            self.n += 1
            self.in_use[self.n] = b
            return self.n, b

    def release(self, n):
        with self.lock:
            self.idle.append(self.in_use.pop(n))


arena = Arena()
end = time.monotonic() + 3.8


def worker(seed):
    i = seed
    while time.monotonic() < end:
        i += 1
        n, b = arena.acquire()
        try:
            if i % 9 == 0:
                raise KeyError(i)
            np.multiply(b, 0.5, out=b)
        except KeyError:
            continue
        finally:
            time.sleep(0.004)
        arena.release(n)


ts = [threading.Thread(target=worker, args=(s,)) for s in (0, 5)]
[t.start() for t in ts]
[t.join() for t in ts]
print(len(arena.in_use) > 0)
