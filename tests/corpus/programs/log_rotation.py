"""Write structured application logs into memory buffers that are rotated, compressed and dropped after five archives."""
import collections
import gzip
import io
import json
import random
import time

import numpy as np

LIMIT = 200_000
KEEP = 5


class RotatingLog:
    def __init__(self):
        self.buffer = io.StringIO()
        self.recent = collections.deque(maxlen=1500)
        self.archives = collections.deque()
        self.rotations = 0

    def write(self, record):
        line = json.dumps(record)
        self.recent.append(record)
        self.buffer.write(line + "\n")
        if self.buffer.tell() > LIMIT:
            self.rotate()

    def rotate(self):
        data = self.buffer.getvalue().encode()
        self.archives.append(gzip.compress(data, 1))
        while len(self.archives) > KEEP:
            self.archives.popleft()
        self.buffer = io.StringIO()
        self.rotations += 1


def main():
    rnd = random.Random(44)
    log = RotatingLog()
    load = np.zeros(256)
    for i in range(20000):
        cost = rnd.expovariate(0.2)
        log.write(
            {
                "seq": i,
                "level": rnd.choice(["INFO", "WARN", "DEBUG"]),
                "path": f"/api/v1/item/{rnd.randrange(5000)}",
                "ms": round(cost, 3),
                "trace": "%032x" % rnd.getrandbits(128),
            }
        )
        load[i % 256] = 0.9 * load[i % 256] + cost
        if i % 40 == 0:
            time.sleep(0.009)
    size = sum(len(a) for a in log.archives)
    print("rotations", log.rotations, "archives", len(log.archives), "bytes", size, "load", round(load.mean(), 3))


if __name__ == "__main__":
    main()
