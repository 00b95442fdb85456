import time
import numpy as np

heads = []
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.1:
    big = np.random.default_rng(i).random(25_000)
    heads.append(big[:10])
    del big
    i += 1
    time.sleep(0.004)
print(len(heads) > 0)
