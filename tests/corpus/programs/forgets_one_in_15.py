import time
import numpy as np


class Sink:
    def __init__(self):
        self.batch = []
        self.late = []
        self.sent = 0

    def put(self, a):
        self.batch.append(a)
        if len(self.batch) == 15:
            self.late.append(self.batch.pop(3))
            self.sent += sum(float(b[0]) for b in self.batch)
            self.batch.clear()


sink = Sink()
n = 0
t0 = time.monotonic()
while time.monotonic() - t0 < 3.6:
    sink.put(np.random.default_rng(n).random(25_000))
    n += 1
    time.sleep(0.002)
print(len(sink.late) > 0)
