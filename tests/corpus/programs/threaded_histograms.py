"""Let two producer threads feed three consumer threads through a bounded queue and merge their histograms."""
import queue
import threading
import time

import numpy as np

BLOCKS = 260
STOP = object()


def producer(seed, q):
    rng = np.random.default_rng(seed)
    for i in range(BLOCKS):
        q.put(rng.gamma(2.0, 1.0 + seed, 12000))
        time.sleep(0.004 if i % 60 < 30 else 0.012)


class Consumer(threading.Thread):
    def __init__(self, q):
        super().__init__()
        self.q = q
        self.hist = np.zeros(200, dtype=np.int64)
        self.done = 0

    def run(self):
        edges = np.linspace(0, 30, 201)
        while True:
            block = self.q.get()
            if block is STOP:
                return
            self.hist += np.histogram(block, edges)[0]
            self.done += 1
            time.sleep(0.024)


def main():
    q = queue.Queue(maxsize=80)
    consumers = [Consumer(q) for _ in range(3)]
    producers = [threading.Thread(target=producer, args=(s, q)) for s in (1, 2)]
    for t in consumers + producers:
        t.start()
    for t in producers:
        t.join()
    for _ in consumers:
        q.put(STOP)
    for t in consumers:
        t.join()
    merged = sum(c.hist for c in consumers)
    print("blocks", sum(c.done for c in consumers), "mode bin", int(merged.argmax()), "count", int(merged.sum()))


if __name__ == "__main__":
    main()
