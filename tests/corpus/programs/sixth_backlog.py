# priority queue: producers outrun the worker for 60 % of the run, then the backlog drains until the end
import time, heapq
import numpy as np
rng = np.random.default_rng(3)
heap = []; done = 0; n = 0; t0 = time.monotonic(); tot = 0.0
N = 800
for i in range(N):
    if i < N * 0.6:
        for _ in range(5):
            job = rng.standard_normal(6000)
            heapq.heappush(heap, (float(rng.random()), n, job)); n += 1
    for _ in range(3):
        if heap:
            p, _, job = heapq.heappop(heap)
            tot += float(np.abs(np.fft.rfft(job)).max()); done += 1
    time.sleep(max(0, t0 + i * 0.01 - time.monotonic()))
print(done, len(heap), tot)
