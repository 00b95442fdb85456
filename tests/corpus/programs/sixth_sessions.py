# web sessions with exponential lifetimes (mean 2.0 s), arrival rate constant from the start; steady state about 400 sessions
import time, random, heapq
import numpy as np
rng = np.random.default_rng(26); random.seed(26)
live = {}; ends = []; t0 = time.monotonic(); s = 0.0; n = 0; hi = 0
for step in range(800):
    for _ in range(2):
        n += 1; live[n] = rng.standard_normal(1000)
        heapq.heappush(ends, (step + random.expovariate(1 / 200), n))
    while ends and ends[0][0] <= step:
        live.pop(heapq.heappop(ends)[1])
    s += float(live[n].sum()) if n in live else 0
    if step % 100 == 99: print(step, len(live))
    time.sleep(max(0, t0 + step * 0.01 - time.monotonic()))
