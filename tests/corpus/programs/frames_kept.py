import time
import numpy as np
import pandas as pd

minutes = {}
t0 = time.monotonic()
m = 0
while time.monotonic() - t0 < 3.5:
    v = np.random.default_rng(m).random((500, 6))
    df = pd.DataFrame(v, columns=list("abcdef"))
    minutes[m] = df
    df.groupby(df.index % 5)["a"].sum()
    m += 1
    time.sleep(0.004)
print(len(minutes) > 0)
