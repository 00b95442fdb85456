import collections
import time
import numpy as np


def message(i):
    return np.arange(100 + (i * 37) % 7900, dtype=float)


def main():
    last = collections.deque()
    t0 = time.monotonic()
    i = 0
    while time.monotonic() - t0 < 3.3:
        last.append((i, message(i)))
        if len(last) > 200:
            last.popleft()
        i += 1
        time.sleep(0.0015)
    return sum(len(m) for _, m in last)


print(main() > 0)
