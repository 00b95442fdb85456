import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
buffer = []
sent = 0


def record(i):
    return np.full(150, i, dtype=np.float32)


def drain():
    global sent
    batch = buffer[:70]
    del buffer[:70]
    sent += len(batch)
    return np.stack(batch).sum()


acc = 0.0
for i in range(int(T * 400)):
    buffer.append(record(i))
    if i % 100 == 99:
        acc += float(drain())
    time.sleep(0.002)
print(sent, acc)
