"""Collect order dicts for an hour, summarise them with pandas and start the next hour empty."""
import random
import time

import pandas as pd

rng = random.Random(61)


def order(i):
    return {
        "id": i,
        "customer": f"c{rng.randrange(5000)}",
        "region": rng.choice(("north", "south", "east", "west")),
        "amount": round(rng.random() * 300, 2),
        "lines": [f"sku{rng.randrange(10**6)}" for _ in range(rng.randrange(1, 12))],
    }


def summarise(orders):
    df = pd.DataFrame.from_records(orders, exclude=["lines"])
    s = df.groupby("region")["amount"].agg(["sum", "count"])
    return {r: (float(v["sum"]), int(v["count"])) for r, v in s.to_dict("index").items()}


def main():
    book, hourly = [], []
    i = 0
    for minute in range(156):
        for _ in range(95):
            i += 1
            book.append(order(i))
        if minute % 26 == 25:
            hourly.append(summarise(book))
            book = []
        time.sleep(0.04)
    print(len(hourly), round(sum(v[0] for h in hourly for v in h.values()), 2))


main()
