import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
n = int(T * 150)
chunks = []
flushed = 0
for i in range(n):
    chunks.append(np.arange(i, i + 2500, dtype=np.float64))
    if len(chunks) == 75:
        big = np.concatenate(chunks)
        flushed += big.size
        chunks.clear()
        del big
    time.sleep(0.006)
print(flushed, len(chunks))
