import sys
import time
import random
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
summaries = []
r = random.Random(12)
N = int(T * 45)
for b in range(N):
    n = r.randrange(4, 30)
    blocks = [np.random.default_rng(b * 50 + k).random((20, 120)) for k in range(n)]
    means = [float(x.mean()) for x in blocks]
    best = blocks[int(np.argmax(means))]
    summaries.append(best[3, :10])
    blocks.clear()
    del best
    time.sleep(0.018 if b % 9 else 0.045)
print(N, round(float(np.mean([s[0] for s in summaries])), 5))
