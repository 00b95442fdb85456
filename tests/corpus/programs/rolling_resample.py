import time
import numpy as np
import pandas as pd

idx = pd.date_range("2024-01-01", periods=10_080, freq="min")
base = np.random.default_rng(5).normal(size=len(idx)).cumsum()
end = time.monotonic() + 2.8
k = 0
peak = 0.0
while time.monotonic() < end:
    s = pd.Series(base + k, index=idx)
    h = s.resample("h").mean()
    r = s.rolling(60).std().dropna()
    peak = max(peak, float(h.max()), float(r.max()))
    k += 1
    time.sleep(0.004)
print(peak > 0)
