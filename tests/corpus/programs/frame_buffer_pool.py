"""Process bursts of video frames with buffers taken from and returned to a pool that is trimmed between bursts."""
import time

import numpy as np


class BufferPool:
    def __init__(self, shape, keep):
        self.shape = shape
        self.keep = keep
        self.free = []
        self.created = 0

    def take(self):
        if self.free:
            return self.free.pop()
        self.created += 1
        return np.empty(self.shape, dtype=np.float32)

    def give(self, buf):
        self.free.append(buf)

    def trim(self):
        del self.free[self.keep:]


def process(buf, t):
    buf[...] = np.float32(t)
    buf[::2] += 1.0
    return float(buf.mean())


def main():
    pool = BufferPool((120, 160), keep=20)
    rng = np.random.default_rng(4)
    total = 0.0
    for wave, depth in enumerate([30, 60, 90, 45, 80, 90]):
        inflight = []
        for t in range(depth * 2):
            inflight.append(pool.take())
            total += process(inflight[-1], t)
            if len(inflight) > depth or rng.random() < 0.3:
                pool.give(inflight.pop(0))
            time.sleep(0.0055)
        while inflight:
            pool.give(inflight.pop())
        if wave % 2:
            pool.trim()
        time.sleep(0.03)
    print("created", pool.created, "pooled", len(pool.free), "total", round(total, 1))


if __name__ == "__main__":
    main()
