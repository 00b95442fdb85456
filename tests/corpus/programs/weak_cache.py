import collections
import time
import weakref
import numpy as np


class Image:
    def __init__(self, i):
        self.pixels = np.zeros((200, 200, 3), np.uint8) + np.uint8(i % 256)


cache = weakref.WeakValueDictionary()
sessions = collections.deque(maxlen=16)
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.2:
    img = Image(i)
    cache[i] = img
    sessions.append(img)
    i += 1
    time.sleep(0.002)
print(len(cache))
