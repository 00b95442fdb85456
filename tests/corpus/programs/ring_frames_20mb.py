import time
import numpy as np


class Camera:
    def __init__(self):
        self.ring = []

    def grab(self, n):
        frame = np.empty((2500, 1000), np.float64)
        frame.fill(n)
        self.ring.append(frame)
        if len(self.ring) > 5:
            self.ring.pop(0)
        return frame[0, 0]


cam = Camera()
t0 = time.monotonic()
n = 0
while time.monotonic() - t0 < 4.0:
    cam.grab(n)
    n += 1
    time.sleep(0.06)
print(n > 0)
