import time
import numpy as np
import pandas as pd

frames = []
total = 0.0
t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.5:
    frames.append(pd.DataFrame({"k": np.arange(2_000) % 7, "v": np.random.default_rng(i).random(2_000)}))
    i += 1
    if i % 40 == 0:
        df = pd.concat(frames, ignore_index=True)
        total += float(df.groupby("k").v.sum().iloc[0])
        frames.clear()
    time.sleep(0.002)
print(total > 0)
