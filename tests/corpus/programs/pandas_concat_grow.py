import sys
import time
import numpy as np
import pandas as pd

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Monitor:
    def __init__(self):
        self.rows = None

    def ingest(self, k):
        g = np.random.default_rng(k)
        batch = pd.DataFrame({"t": np.arange(400) + 400 * k, "v": g.random(400), "w": g.integers(0, 9, 400)})
        if self.rows is None:
            self.rows = batch
        else:
            self.rows = pd.concat([self.rows, batch], ignore_index=True)
        return self.rows["v"].tail(50).mean()


m = Monitor()
last = 0
n = int(T * 110)
for k in range(n):
    last = m.ingest(k)
    time.sleep(0.006)
print(n, round(float(last), 4))
