"""Worker threads with retries: what fails three times goes to a list nobody drains."""
import queue
import random
import sys
import threading
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
inbox = queue.Queue(maxsize=30)
dead = []
done = [0]


class Message:
    def __init__(self, number, payload):
        self.number, self.payload, self.tries = number, payload, 0


def worker(seed, halt):
    rng = random.Random(seed)
    while not halt.is_set():
        try:
            msg = inbox.get(timeout=0.05)
        except queue.Empty:
            continue
        for attempt in range(3):
            scratch = msg.payload * rng.random()
            if rng.random() > 0.4 or scratch[0] > 2:
                done[0] += 1
                break
            msg.tries += 1
            time.sleep(0.001)
        else:
            dead.append(msg)


halt = threading.Event()
crew = [threading.Thread(target=worker, args=(i, halt), daemon=True) for i in range(3)]
for t in crew:
    t.start()
stop = time.monotonic() + T
n = 0
while time.monotonic() < stop:
    inbox.put(Message(n, np.full(1500 + n % 1000, 0.5)))
    n += 1
    time.sleep(0.004)
halt.set()
for t in crew:
    t.join()
print("sent", n, "done", done[0], "dead", len(dead))
