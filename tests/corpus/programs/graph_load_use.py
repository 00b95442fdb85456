import random
import time
import numpy as np

random.seed(1)
adj = {}
for node in range(900):
    adj[node] = np.unique(np.random.default_rng(node).integers(0, 900, 200))
    time.sleep(0.0015)
t0 = time.monotonic()
pos = 0
while time.monotonic() - t0 < 2.8:
    for _ in range(50):
        nb = adj[pos]
        pos = int(nb[random.randrange(len(nb))])
    time.sleep(0.001)
print(0 <= pos < 900)
