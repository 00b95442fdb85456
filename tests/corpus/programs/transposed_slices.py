import collections
import time
import numpy as np

q = collections.deque()


def block(i):
    return np.full((50, 100), i % 251, dtype=np.float64)


end = time.monotonic() + 3.5
i = 0
while time.monotonic() < end:
    b = block(i)
    q.append(b.T[::-1, 3].reshape(5, -1)[2] if i % 2 else b[4:6].ravel()[:7])
    i += 1
    time.sleep(0.002)
print(len(q) > 0)
