"""One thread per upload; finished Thread objects (with their result) stay in a list to join."""
import random
import sys
import threading
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0


class Upload(threading.Thread):
    def __init__(self, number):
        super().__init__(daemon=True)
        self.number = number
        self.result = None

    def run(self):
        rng = random.Random(self.number)
        noise = np.random.default_rng(self.number).random(rng.randint(3000, 6000))
        time.sleep(rng.uniform(0.002, 0.03))
        self.result = np.sort(noise)


def spectrum(n):
    return np.abs(np.fft.rfft(np.ones(n)))


uploads = []
stop = time.monotonic() + T
n = 0
while time.monotonic() < stop:
    u = Upload(n)
    u.start()
    uploads.append(u)
    spectrum(2048)
    n += 1
    time.sleep(0.02)
for u in uploads:
    u.join()
print("uploads", n, "max %.4f" % max(float(u.result[-1]) for u in uploads))
