"""Run a three-phase ETL job (extract, transform, load) over daily sales batches of several regions and print totals."""
import sqlite3
import time

import numpy as np
import pandas as pd

REGIONS = ["north", "south", "west"]
DAYS = 18


def extract(region, day, rng):
    n = 5000 + 500 * (day % 5)
    frame = pd.DataFrame(
        {
            "store": rng.integers(0, 40, n),
            "sku": rng.integers(0, 900, n),
            "qty": rng.poisson(3, n),
            "price": np.round(rng.gamma(3.0, 4.0, n), 2),
        }
    )
    frame["day"] = day
    return frame


def transform(frame):
    frame = frame[frame["qty"] > 0].copy()
    frame["revenue"] = frame["qty"] * frame["price"]
    top = frame["revenue"].quantile(0.999)
    frame["revenue"] = frame["revenue"].clip(upper=top)
    frame["z"] = (frame["revenue"] - frame["revenue"].mean()) / frame["revenue"].std()
    return frame


def load(con, region, frames):
    rows = 0
    while frames:
        chunk = pd.concat([frames.pop() for _ in range(min(3, len(frames)))])
        agg = chunk.groupby(["day", "store"], as_index=False)["revenue"].sum()
        con.executemany(
            "insert into sales values (?,?,?,?)",
            [(region, int(d), int(s), float(r)) for d, s, r in agg.itertuples(index=False)],
        )
        rows += len(agg)
        time.sleep(0.04)
    con.commit()
    return rows


def main():
    con = sqlite3.connect(":memory:")
    con.execute("create table sales (region text, day int, store int, revenue real)")
    for i, region in enumerate(REGIONS):
        rng = np.random.default_rng(i)
        staged = []
        for day in range(DAYS):
            staged.append(extract(region, day, rng))
            time.sleep(0.04)
        cleaned = []
        while staged:
            cleaned.append(transform(staged.pop(0)))
            time.sleep(0.025)
        print(region, load(con, region, cleaned))
    print(con.execute("select region, round(sum(revenue)) from sales group by region").fetchall())


if __name__ == "__main__":
    main()
