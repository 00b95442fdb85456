import time
import numpy as np
import pandas as pd

state = {k: pd.DataFrame({"t": np.zeros(1), "v": np.zeros(1)}) for k in range(8)}
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 4.0:
    k = i % 8
    new = pd.DataFrame({"t": np.arange(800.0) + i, "v": np.random.default_rng(i).random(800)})
    state[k] = pd.concat([state[k], new], ignore_index=True)
    i += 1
    time.sleep(0.004)
print(len(state))
