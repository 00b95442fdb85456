import io
import json
import time
import numpy as np
import pandas as pd


def load():
    n = 300_000
    rng = np.random.default_rng(1)
    df = pd.DataFrame({"shop": rng.integers(0, 40, n), "amount": rng.random(n), "qty": rng.integers(1, 9, n)})
    parts = [df[df.shop == s].copy() for s in range(40)]
    return {s: float((p.amount * p.qty).sum()) for s, p in enumerate(parts)}


def main():
    totals = load()
    end = time.monotonic() + 2.8
    n = 0
    while time.monotonic() < end:
        out = io.StringIO()
        for shop, amount in totals.items():
            out.write(json.dumps({"shop": shop, "amount": amount, "run": n}) + "\n")
        n += len(out.getvalue())
        time.sleep(0.003)
    print("written", n > 0)


main()
