"""Three data sets are prepared one after the other; the parts of each wait in a list until it is done."""
import time, numpy as np

def prepare(n):
    parts = []
    for i in range(n):
        parts.append(np.full(700, i)); time.sleep(0.0005)
    return np.mean([q[0] for q in parts])
print(prepare(800), prepare(600), prepare(3000))
