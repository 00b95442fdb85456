import queue
import sys
import threading
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
q = queue.Queue(maxsize=24)
DONE = object()
results = {"n": 0, "sum": 0.0}


def producer(n):
    rng = np.random.default_rng(1)
    for _ in range(n):
        q.put(rng.integers(0, 255, size=(120, 160), dtype=np.uint8))
    q.put(DONE)


def consumer():
    while (frame := q.get()) is not DONE:
        small = frame[::2, ::2].astype(np.float32)
        results["n"] += 1
        results["sum"] += float(small.mean())
        time.sleep(0.009)


n = int(T * 100)
ts = [threading.Thread(target=producer, args=(n,)), threading.Thread(target=consumer)]
for t in ts:
    t.start()
for t in ts:
    t.join()
print(results["n"], round(results["sum"], 3))
