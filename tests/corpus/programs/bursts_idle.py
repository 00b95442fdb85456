import sys
import time
import random
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
r = random.Random(77)
t, left, total = 0, int(T * 200), 0
while left > 0:
    idle = min(left, r.randrange(5, 40))
    for _ in range(idle):
        time.sleep(0.0048)
    left -= idle
    burst = []
    for k in range(int(r.paretovariate(1.1) * 20) % 400 + 5):
        burst.append(np.full(r.randrange(100, 3000), k, np.int32))
        if k % 20 == 19:
            left -= 1
            time.sleep(0.0045)
    total += sum(int(b[0]) for b in burst)
    burst = None
print(total)
