import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
TEMPLATE = """
def rule_{n}(x):
    t = x * {a} + {b}
    return float(np.clip(t, 0, 1).sum())
"""
registry = {"np": np}
x = np.linspace(-1, 1, 5000)
acc = 0.0
for step in range(int(T * 150)):
    n = step % 12
    exec(TEMPLATE.format(n=n, a=step % 5, b=(step % 9) / 10), registry)
    acc += registry["rule_%d" % n](x)
    time.sleep(0.006)
print(round(acc, 2), len(registry))
