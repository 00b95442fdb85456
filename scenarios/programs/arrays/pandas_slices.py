"""A few rows of each table are kept for later; each selection is a copy that stays."""

import numpy as np
import pandas as pd

OUTCOME = "leak"
CLASS = "cache-only-grows"
HELD_BY = (
    "list 'suspicious' (local variable of main() at pandas_slices.py) through a pandas DataFrame"
)


def main() -> None:
    chance = np.random.default_rng(11)
    suspicious = []
    for _ in range(400):
        table = pd.DataFrame(
            {
                "account": np.arange(2_000) % 97,
                "amount": chance.normal(100, 30, 2_000),
                "fee": chance.random(2_000),
            }
        )
        per_account = table.groupby("account")["amount"].mean()
        threshold = float(per_account.mean())
        suspicious.append(table[table["amount"] > threshold])  # leaks here
    print(f"{sum(len(rows) for rows in suspicious)} rows")


if __name__ == "__main__":
    main()
