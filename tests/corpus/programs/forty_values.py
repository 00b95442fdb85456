import time
import numpy as np

series = {f"s{k}": np.zeros(1) for k in range(40)}
names = list(series)
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 4.0:
    k = names[i % 40]
    series[k] = np.append(series[k], np.random.default_rng(i).random(200))
    i += 1
    time.sleep(0.001)
print(len(series))
