import sys
import time
import random
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
ROUTES = ["/", "/login", "/cart", "/pay", "/search"]
latency = {p: np.empty(0) for p in ROUTES}


def serve(path, n, g):
    lat = g.gamma(2.0, 3.0, n)
    latency[path] = np.append(latency[path], lat)
    return float(np.percentile(latency[path][-200:], 95))


g = np.random.default_rng(8)
r = random.Random(5)
p95 = 0
for i in range(int(T * 120)):
    p95 = serve(r.choice(ROUTES), 1000, g)
    time.sleep(0.006)
print(round(p95, 3))
