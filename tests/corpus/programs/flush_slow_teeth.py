import time
import zlib
import numpy as np


class Writer:
    def __init__(self, limit):
        self.limit = limit
        self.batch = []
        self.bytes = 0

    def write(self, a):
        self.batch.append(a)
        if len(self.batch) >= self.limit:
            for x in self.batch:
                self.bytes += len(zlib.compress(x[:1000].tobytes(), 1))
            self.batch = []


def main():
    w = Writer(100)
    for i in range(500):
        w.write(np.arange(40_000) * (i + 1))
        time.sleep(0.01)
    print(w.bytes > 0, len(w.batch))


main()
