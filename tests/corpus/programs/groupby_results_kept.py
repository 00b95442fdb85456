import time
import numpy as np
import pandas as pd


class Report:
    pages = []

    def add(self, df):
        self.pages.append(df.sort_values("v"))


rep = Report()
end = time.monotonic() + 3.8
i = 0
while time.monotonic() < end:
    rng = np.random.default_rng(i)
    df = pd.DataFrame({"k": rng.integers(0, 9, 4_000), "v": rng.random(4_000)})
    rep.add(df)
    df.groupby("k").v.mean()
    i += 1
    time.sleep(0.005)
print(len(rep.pages) > 0)
