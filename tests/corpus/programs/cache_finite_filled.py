import sys
import time
import random
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
cache = {}


def kernel(radius, sigma):
    k = (radius, sigma)
    if k not in cache:
        y, x = np.ogrid[-radius:radius + 1, -radius:radius + 1]
        w = np.exp(-(x * x + y * y) / (2.0 * sigma ** 2))
        cache[k] = w / w.sum()
    return cache[k]


keys = [(r, s) for r in range(3, 18) for s in range(1, 11)]
random.Random(0).shuffle(keys)
N = int(T * 180)
img = np.random.default_rng(0).random((60, 60))
acc = 0.0
for i in range(N):
    if i < N // 4:
        todo = keys[i * len(keys) // (N // 4):(i + 1) * len(keys) // (N // 4)]
    else:
        todo = [random.Random(i).choice(keys)]
    for rad, s in todo:
        w = kernel(rad, s)
        acc += float((img[:w.shape[0], :w.shape[1]] * w).sum())
    time.sleep(0.0052)
print(len(cache), round(acc, 4))
