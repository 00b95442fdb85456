import random
import time
import numpy as np

random.seed(2)
memo = {}
for i in range(1_500):
    k = random.randrange(600)
    if k not in memo:
        memo[k] = np.ones(8_000) * k
    time.sleep(0.002)
print(len(memo))
