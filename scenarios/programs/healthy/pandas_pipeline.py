"""The same pandas pipeline over and over; every result replaces the one before."""

import numpy as np
import pandas as pd

OUTCOME = "stable"


def pipeline(seed: int) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    orders = pd.DataFrame(
        {"customer": chance.integers(0, 50, 1_500), "amount": chance.random(1_500)}
    )
    customers = pd.DataFrame({"customer": range(50), "region": [c % 5 for c in range(50)]})
    joined = orders.merge(customers, on="customer")
    joined["share"] = joined["amount"] / joined.groupby("region")["amount"].transform("sum")
    return joined.groupby("region")[["amount", "share"]].agg(["mean", "max"])


def main() -> None:
    result = pipeline(0)
    for seed in range(1, 120):
        result = pipeline(seed)
    print(result.shape)


if __name__ == "__main__":
    main()
