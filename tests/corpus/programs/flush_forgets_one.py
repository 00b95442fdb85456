import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Writer:
    def __init__(self):
        self.batch = []
        self.retry = []
        self.bytes = 0

    def put(self, rec):
        self.batch.append(rec)
        if len(self.batch) >= 15:
            self.flush()

    def flush(self):
        while len(self.batch) > 1:
            self.bytes += self.batch.pop(0).nbytes
        self.retry.extend(self.batch)
        self.batch = []


w = Writer()
for i in range(int(T * 120)):
    for k in range(5):
        w.put(np.full(640, i + k, dtype=np.float64))
    time.sleep(0.0072)
print(w.bytes)
