import time
import numpy as np

SRC = '''
def remember(x, seen=[]):
    seen.append(x * 2.0)
    return len(seen)
'''
space = {}
exec(SRC, space)
remember = space["remember"]

t0 = time.monotonic()
base = np.ones(3_000)
while time.monotonic() - t0 < 2.8:
    remember(base)
    base += 1e-9
    time.sleep(0.002)
