"""Daily sales by shop: the suspicious groups go to an audit trail that is never closed."""
import sys
import time

import numpy as np
import pandas as pd

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
ROWS, SHOPS = 3000, 12


def day(rng, number):
    return pd.DataFrame(
        {
            "shop": rng.integers(0, SHOPS, ROWS),
            "amount": rng.gamma(2.0, 15.0, ROWS),
            "items": rng.integers(1, 9, ROWS),
            "day": np.full(ROWS, number),
        }
    )


class Audit:
    def __init__(self, limit):
        self.limit = limit
        self.trail = []

    def check(self, frame):
        flagged = 0
        for shop, group in frame.groupby("shop"):
            ratio = group["amount"] / group["items"]
            if ratio.quantile(0.99) > self.limit:
                self.trail.append((int(shop), group.assign(ratio=ratio)))
                flagged += 1
        return flagged

    def worst(self):
        return max(float(g["amount"].max()) for _, g in self.trail)


def main():
    rng = np.random.default_rng(0)
    audit = Audit(limit=75.0)
    totals = {}
    start = time.perf_counter()
    number = flagged = 0
    while time.perf_counter() - start < T:
        frame = day(rng, number)
        totals[number % 7] = frame.groupby("shop")["amount"].sum()
        flagged += audit.check(frame)
        number += 1
        time.sleep(0.003)
    print("days", number > 0, "flagged", flagged > 0, "worst", audit.worst() > 0)


main()
