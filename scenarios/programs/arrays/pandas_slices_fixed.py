"""Of each table of pandas-slices the number of suspicious rows is kept, not the rows."""

import numpy as np
import pandas as pd

OUTCOME = "stable"


def main() -> None:
    chance = np.random.default_rng(11)
    suspicious = 0
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
        suspicious += len(table[table["amount"] > threshold])
    print(f"{suspicious} rows")


if __name__ == "__main__":
    main()
