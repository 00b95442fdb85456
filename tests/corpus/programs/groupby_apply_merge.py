import time
import numpy as np
import pandas as pd


class Pipeline:
    def __init__(self):
        rng = np.random.default_rng(0)
        self.sales = pd.DataFrame({"k": rng.integers(0, 200, 20_000), "v": rng.random(20_000)})
        self.names = pd.DataFrame({"k": np.arange(200), "w": rng.random(200)})
        self.out = None

    def run(self, f):
        df = self.sales.merge(self.names, on="k")
        df["x"] = df["v"] * df["w"] * f
        df["share"] = df["x"] / df.groupby("k")["x"].transform("sum")
        self.out = df.sort_values("share").head(100)


p = Pipeline()
end = time.monotonic() + 2.4
f = 1.0
while time.monotonic() < end:
    p.run(f)
    f *= 1.01
    time.sleep(0.003)
print(len(p.out))
