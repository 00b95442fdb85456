"""Keep the last forty ticks of market quotes as data frames and recompute rolling statistics of the window."""
import time
from collections import deque

import numpy as np
import pandas as pd

SYMBOLS = [f"S{i:03d}" for i in range(600)]
WINDOW = 40


def quote(rng, tick, level):
    price = level * np.exp(rng.normal(0, 0.002, len(SYMBOLS)))
    frame = pd.DataFrame({"price": price, "volume": rng.poisson(40, len(SYMBOLS))}, index=SYMBOLS)
    frame["tick"] = tick
    frame["notional"] = frame["price"] * frame["volume"]
    return frame, price


def main():
    rng = np.random.default_rng(13)
    level = rng.uniform(10, 200, len(SYMBOLS))
    window = deque(maxlen=WINDOW)
    alerts = 0
    last = None
    for tick in range(200):
        frame, level = quote(rng, tick, level)
        window.append(frame)
        if len(window) == WINDOW and tick % 4 == 0:
            joined = pd.concat(window)
            grouped = joined.groupby(level=0)
            vwap = grouped["notional"].sum() / grouped["volume"].sum()
            spread = grouped["price"].std() / grouped["price"].mean()
            last = vwap
            alerts += int((spread > 0.013).sum())
        time.sleep(0.02)
    print("alerts", alerts, "vwap", round(float(last.mean()), 3))


if __name__ == "__main__":
    main()
