import time
import numpy as np


class Sender:
    def __init__(self):
        self.outbox = []
        self.acked = 0

    def send(self, a):
        self.outbox.append(memoryview(a)[:64])
        self.acked += 1


s = Sender()
end = time.monotonic() + 3.0
i = 0
while time.monotonic() < end:
    s.send(np.cos(np.arange(10_000) * i))
    i += 1
    time.sleep(0.004)
