import time
import numpy as np

table = {}
for p in range(6, 21):
    x = np.sin(np.arange(2 ** p))
    for rep in range(14):
        y = np.abs(np.fft.rfft(x))
        table[p] = float(y.max())
        time.sleep(0.006)
print(len(table))
