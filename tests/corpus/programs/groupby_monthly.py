import collections
import time
import numpy as np
import pandas as pd

recent = collections.deque(maxlen=12)
t0 = time.monotonic()
m = 0
while time.monotonic() - t0 < 3.0:
    rng = np.random.default_rng(m)
    df = pd.DataFrame({"shop": rng.integers(0, 25, 8_000), "v": rng.random(8_000)})
    agg = df.groupby("shop")["v"].agg(["mean", "max", "count"])
    recent.append(agg)
    m += 1
    time.sleep(0.004)
print(len(recent))
