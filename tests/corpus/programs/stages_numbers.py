"""Three stages, each its own function, called one after the other; each returns a number."""
import time, numpy as np
def load():
    parts = []
    for i in range(1500):
        parts.append(np.full(800, i)); time.sleep(0.001)
    return sum(float(p[0]) for p in parts)
def clean():
    parts = []
    for i in range(1500):
        parts.append(np.arange(700) + i); time.sleep(0.001)
    return sum(float(p[0]) for p in parts)
def fit():
    parts = []
    for i in range(1500):
        parts.append(np.ones(900) * i); time.sleep(0.001)
    return sum(float(p[0]) for p in parts)
print(load()); print(clean()); print(fit())
