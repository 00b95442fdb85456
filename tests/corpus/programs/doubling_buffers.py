import time
import numpy as np


class Grow:
    def __init__(self):
        self.buf = np.empty(64)
        self.n = 0

    def extend(self, x):
        if self.n + x.size > self.buf.size:
            new = np.empty(max(self.buf.size * 3 // 2, self.n + x.size))
            new[:self.n] = self.buf[:self.n]
            self.buf = new
        self.buf[self.n:self.n + x.size] = x
        self.n += x.size


bufs = [Grow() for _ in range(20)]
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 4.5:
    bufs[i % 20].extend(np.arange(100.0 + (i % 37)))
    i += 1
    if i % 3 == 0:
        time.sleep(0.001)
print(sum(b.n for b in bufs) > 0)
