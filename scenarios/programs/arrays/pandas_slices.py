"""A few rows of each table are kept for later; each selection is a copy that stays.

Fixed: Of each table of pandas-slices the number of suspicious rows is kept, not the rows.
"""

import numpy as np
import pandas as pd
from tlmem.scenarios.harness.switch import FIXED

OUTCOME = "leak"
CLASS = "cache-only-grows"
HELD_BY = (
    "list 'suspicious' (local variable of main() at pandas_slices.py) through a pandas DataFrame"
)


def main() -> None:
    chance = np.random.default_rng(11)
    suspicious, count = [], 0
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
        if FIXED:
            count += len(table[table["amount"] > threshold])
        else:
            suspicious.append(table[table["amount"] > threshold])  # leaks here
    print(f"{count + sum(len(rows) for rows in suspicious)} rows")


if __name__ == "__main__":
    main()
