import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
N = int(T * 160)
K = 300
rate = 34.0 / N
g = np.random.default_rng(4)
animals = [np.zeros(200) for _ in range(12)]
births = deaths = 0
for t in range(N):
    n = len(animals)
    b = int(g.poisson(rate * n * 1.5))
    d = min(n - 1, int(g.poisson(rate * n * (0.5 + n / K))))
    for _ in range(b):
        animals.append(animals[int(g.integers(len(animals)))] + g.standard_normal(200) * 0.01)
    for _ in range(d):
        j = int(g.integers(len(animals)))
        animals[j] = animals[-1]
        animals.pop()
    births += b
    deaths += d
    time.sleep(0.0058)
print(births > deaths)
