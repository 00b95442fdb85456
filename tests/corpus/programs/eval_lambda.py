import time
import numpy as np

make = eval("lambda k: np.linspace(0, k, 50_000)", {"np": np})
kept = []
t0 = time.monotonic()
k = 1
while time.monotonic() - t0 < 4.0:
    kept.append(make(k))
    k += 1
    make(k).sum()
    time.sleep(0.02)
print(len(kept) > 0)
