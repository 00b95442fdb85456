import time
import numpy as np

res = []
for i in range(400):
    res.append(np.random.default_rng(i).random(8_000))
    time.sleep(0.008)
print(np.concatenate(res).size)
