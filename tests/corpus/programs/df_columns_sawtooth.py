import time
import numpy as np
import pandas as pd

t0 = time.monotonic()
df = pd.DataFrame(index=range(3_000))
i = 0
while time.monotonic() - t0 < 3.2:
    df[f"c{i % 30}"] = np.random.default_rng(i).random(3_000)
    i += 1
    if i % 30 == 0:
        df = pd.DataFrame(index=range(3_000))
    time.sleep(0.004)
print(df.shape[0])
