import time
import numpy as np


class ImagePool:
    """keeps what it hands out in `lent` until it is given back"""

    def __init__(self, shape):
        self.shape = shape
        self.spare = []
        self.lent = []

    def take(self):
        img = self.spare.pop() if self.spare else np.zeros(self.shape, np.uint8)
        self.lent.append(img)
        return img

    def give(self, img):
        for k, x in enumerate(self.lent):
            if x is img:
                self.spare.append(self.lent.pop(k))
                return


pool = ImagePool((1000, 1000, 4))
t0 = time.monotonic()
job = 0
while time.monotonic() - t0 < 4.4:
    a, b = pool.take(), pool.take()
    a[::50] = job % 256
    pool.give(a)
    if job % 20 != 7:
        pool.give(b)
    job += 1
    time.sleep(0.006)
print(len(pool.lent) > 0)
