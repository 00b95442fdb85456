import queue
import sys
import threading
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
stop = threading.Event()


def camera(q, n):
    for i in range(n):
        frame = np.full((48, 64), i % 251, dtype=np.uint8)
        q.put((i, frame))
        time.sleep(0.004)
    stop.set()


def detector(q, found):
    while not stop.is_set():
        try:
            i, frame = q.get(timeout=0.05)
        except queue.Empty:
            continue
        if int(frame.sum()) % 7 == 0:
            found.append(i)
        time.sleep(0.013)


q = queue.Queue()
found = []
t1 = threading.Thread(target=camera, args=(q, int(T * 220)))
t2 = threading.Thread(target=detector, args=(q, found))
t1.start(), t2.start()
t1.join(), t2.join()
print("camera ended")
