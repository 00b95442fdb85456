import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


def block(seed):
    g = np.random.default_rng(seed)
    m = g.random((80, 80 + seed % 40))
    time.sleep(0.002)
    return np.cumsum(m - m.mean(axis=0), axis=1)


rounds = int(T * 14)
tr = 0.0
for r in range(rounds):
    with ThreadPoolExecutor(max_workers=3) as ex:
        fs = [ex.submit(block, r * 50 + i) for i in range(24)]
        tr += sum(float(f.result()[:, -1].std()) for f in as_completed(fs))
    time.sleep(0.035)
print(rounds, round(tr, 2))
