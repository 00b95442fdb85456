"""Ticks into a pandas frame of the last seconds, resampled to bars at each update."""
import sys
import time

import numpy as np
import pandas as pd

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
BATCH = 60


def ticks(rng, first, n):
    idx = pd.date_range("2024-01-01", periods=n, freq="100ms") + pd.Timedelta(milliseconds=100 * first)
    return pd.DataFrame(
        {"price": 100 + rng.normal(0, 0.02, n).cumsum(), "size": rng.integers(1, 100, n)}, index=idx
    )


class Window:
    def __init__(self, rows):
        self.rows = rows
        self.frame = None

    def push(self, new):
        if self.frame is None:
            self.frame = new
        else:
            self.frame = pd.concat([self.frame, new])
            if len(self.frame) > self.rows:
                self.frame = self.frame.iloc[-self.rows:].copy()

    def bars(self):
        ohlc = self.frame["price"].resample("5s").ohlc()
        ohlc["volume"] = self.frame["size"].resample("5s").sum()
        return ohlc


def main():
    rng = np.random.default_rng(4)
    start = time.perf_counter()
    window, done, last = None, 0, {}
    window = Window(20000)
    while (t := time.perf_counter() - start) < T:
        # market opens: catch up with the backlog first, then normal speed
        size = BATCH if len(window.frame if window.frame is not None else ()) >= 20000 else max(
            BATCH, int(20000 * t / (0.3 * T)) - done)
        window.push(ticks(rng, done, size))
        done += size
        bars = window.bars()
        last = {"close": float(bars["close"].iloc[-1]), "vol": int(bars["volume"].iloc[-1])}
        time.sleep(0.003)
    print("window", len(window.frame) <= 20000, "last", sorted(last))


main()
