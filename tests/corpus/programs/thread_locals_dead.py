import sys
import threading
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
tl = threading.local()
total = [0.0]
lock = threading.Lock()


def task(n):
    tl.work = np.empty((n, 60))
    tl.work[:] = n
    tl.more = [np.zeros(50) for _ in range(4)]
    with lock:
        total[0] += float(tl.work.mean())
    time.sleep(0.006)


for i in range(int(T * 55)):
    ts = [threading.Thread(target=task, args=(20 + (i + k) % 50,)) for k in range(4)]
    for t in ts:
        t.start()
    for t in ts:
        t.join()
    time.sleep(0.006)
print(round(total[0], 1))
