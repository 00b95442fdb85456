import heapq
import random
import time
import numpy as np

random.seed(9)
heap = []
n = 0
t0 = time.monotonic()
filling = True
while time.monotonic() - t0 < 3.3:
    if filling:
        heapq.heappush(heap, (random.random(), n, np.zeros(10_000) + n))
        n += 1
        filling = len(heap) < 120
    else:
        heapq.heappop(heap)[2].sum()
        filling = len(heap) <= 20
    time.sleep(0.001)
print(20 <= len(heap) <= 120)
