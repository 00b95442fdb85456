import collections
import queue
import sys
import threading
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
inbox = queue.Queue(50)
log = collections.deque(maxlen=300)
local = threading.local()
lock = threading.Lock()
served = 0


def scratch(n):
    if not hasattr(local, "buf") or local.buf.size < n:
        local.buf = np.empty(n)
    return local.buf[:n]


def worker():
    global served
    while (req := inbox.get()) is not None:
        rid, n = req
        b = scratch(n)
        b[:] = np.arange(n)
        np.sqrt(b, out=b)
        with lock:
            served += 1
            log.append((rid, np.array([b[0], b[-1], b.mean()])))
        time.sleep(0.004)


ws = [threading.Thread(target=worker) for _ in range(3)]
for w in ws:
    w.start()
for rid in range(int(T * 350)):
    inbox.put((rid, 1000 + rid * 31 % 9000))
for w in ws:
    inbox.put(None)
for w in ws:
    w.join()
print(served, len(log))
