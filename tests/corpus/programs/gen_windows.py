import time
import numpy as np


def stream(end):
    i = 0
    while time.monotonic() < end:
        yield np.arange(i, i + 3_000, dtype=float)
        i += 3_000


def windows(src, size, hop):
    tail = np.empty(0)
    for block in src:
        tail = np.concatenate([tail, block])
        while tail.size >= size:
            yield tail[:size].copy()
            tail = tail[hop:]


s = 0.0
for w in windows(stream(time.monotonic() + 2.7), 8_192, 4_096):
    s += w.mean()
    time.sleep(0.001)
print(s > 0)
