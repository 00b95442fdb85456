import threading
import time
import numpy as np

lock = threading.Lock()
store = []
stop = threading.Event()
flushed = [0]


def flusher():
    while not stop.wait(0.25):
        with lock:
            n = len(store)
            store.clear()
        flushed[0] += n


th = threading.Thread(target=flusher, daemon=True)
th.start()
t0 = time.monotonic()
while time.monotonic() - t0 < 4.0:
    a = np.sin(np.arange(5_000))
    with lock:
        store.append(a)
    time.sleep(0.001)
stop.set()
th.join()
print(flushed[0] > 0)
