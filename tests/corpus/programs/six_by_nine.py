import time
import numpy as np

kept = []
for step in range(9):
    kept.append(np.full(125_000, 1.0 * step))
    time.sleep(0.07)
    kept.append(np.arange(125_000) + step)
    time.sleep(0.07)
    kept.append(np.random.default_rng(step).random(125_000))
    time.sleep(0.07)
    kept.append(np.linspace(0, step, 125_000))
    time.sleep(0.07)
    kept.append(np.sin(np.arange(125_000)))
    time.sleep(0.07)
    kept.append(np.ones((250, 500)) * step)
    time.sleep(0.07)
print(len(kept))
