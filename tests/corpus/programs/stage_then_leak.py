"""A load of 1.5 s that is given back, then a service that leaks for 5 s."""
import time, numpy as np
def load():
    rows = []
    for i in range(1200):
        rows.append(np.full(800, i)); time.sleep(0.001)
    return sum(float(r[0]) for r in rows)
seen = []
def answer(i):
    seen.append(np.arange(500) + i); time.sleep(0.001)
print(load())
for i in range(4000): answer(i)
