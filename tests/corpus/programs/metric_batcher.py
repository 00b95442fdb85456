"""Telemetry client: a batch is sent when 120 points wait or after 0.3 seconds."""
import random
import sys
import threading
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0


class Batcher:
    def __init__(self, limit=120, max_age=0.3):
        self.limit, self.max_age = limit, max_age
        self.lock = threading.Lock()
        self.points, self.since = [], time.monotonic()
        self.sent = 0

    def add(self, name, values):
        with self.lock:
            self.points.append({"name": name, "at": time.time(), "v": values})
            if len(self.points) >= self.limit or time.monotonic() - self.since > self.max_age:
                batch, self.points = self.points, []
                self.since = time.monotonic()
                self.send(batch)

    def send(self, batch):
        blob = np.concatenate([p["v"] for p in batch])
        self.sent += blob.nbytes


def probe(batcher, name, seed, stop):
    rng = random.Random(seed)
    while time.monotonic() < stop:
        for _ in range(rng.choice((1, 1, 1, 8))):
            batcher.add(name, np.arange(rng.randint(50, 400), dtype=float))
        time.sleep(rng.uniform(0.002, 0.012))


b = Batcher()
stop = time.monotonic() + T
threads = [threading.Thread(target=probe, args=(b, f"cpu{i}", i, stop)) for i in range(2)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("bytes sent", b.sent, "waiting", len(b.points))
