"""pandas: new ticks are concatenated, the frame is cut back to 1,500-1,800 rows."""
import sys
import time

import numpy as np
import pandas as pd

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = np.random.default_rng(1)
ROWS, SLACK = 1500, 300


def fetch(n, clock):
    return pd.DataFrame({
        "t": clock + np.arange(n) * 1e-3,
        "price": 100 + rng.normal(size=n).cumsum() * 0.01,
        "qty": rng.integers(1, 50, size=n).astype(float),
    })


def vwap(df):
    return float((df["price"] * df["qty"]).sum() / df["qty"].sum())


frame = fetch(10, 0.0)
stop = time.perf_counter() + T
polls, last = 0, 0.0
while time.perf_counter() < stop:
    new = fetch(int(rng.integers(20, 120)), polls)
    frame = pd.concat([frame, new], ignore_index=True)
    if len(frame) > ROWS + SLACK:
        frame = frame.iloc[-ROWS:].reset_index(drop=True).copy()
    last = vwap(frame)
    polls += 1
    time.sleep(0.005)
print("polls", polls, "rows", len(frame), "vwap %.2f" % last)
