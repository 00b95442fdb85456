import collections
import functools
import time
import numpy as np

history = collections.deque(maxlen=10)


def retry(n):
    def deco(f):
        @functools.wraps(f)
        def inner(*a, **k):
            for attempt in range(n):
                try:
                    return f(*a, attempt=attempt, **k)
                except OSError as e:
                    history.append((f.__name__, e))
                    time.sleep(0.001 * 2 ** attempt)
            raise RuntimeError("gave up")
        return inner
    return deco


@retry(4)
def read_block(i, attempt=0):
    block = np.full(80_000, i, np.float32)
    if (i * 7 + attempt) % 5 == 0:
        raise OSError("short read")
    return block


t0 = time.monotonic()
i = 1
while time.monotonic() - t0 < 3.0:
    read_block(i).max()
    i += 1
    time.sleep(0.003)
print(len(history))
