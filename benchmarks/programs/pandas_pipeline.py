"""Filter, merge, group, sort and pivot the same tables again and again."""

import sys
import time
from collections.abc import Callable

import numpy as np
import pandas as pd


def make_tables(rows: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Sales by customer, and the customers."""
    random = np.random.default_rng(3)
    sales = pd.DataFrame(
        {
            "customer": random.integers(0, 500, rows),
            "day": random.integers(0, 90, rows),
            "price": random.random(rows) * 100.0,
            "pieces": random.integers(1, 9, rows),
        }
    )
    customers = pd.DataFrame({"customer": np.arange(500), "region": random.integers(0, 12, 500)})
    return sales, customers


def summarise(sales: pd.DataFrame, customers: pd.DataFrame) -> pd.DataFrame:
    """Revenue by region and week."""
    sold = sales[sales["price"] > 5.0].assign(
        revenue=lambda table: table["price"] * table["pieces"], week=lambda table: table["day"] // 7
    )
    joined = sold.merge(customers, on="customer")
    grouped = joined.groupby(["region", "week"])["revenue"].agg(["sum", "mean", "max"])
    return grouped.reset_index().sort_values("sum").pivot(index="region", columns="week")


def prepare() -> dict[str, Callable[[int], object]]:
    """A unit is one summary of 20,000 sales."""
    tables = make_tables(20_000)

    def work(units: int) -> None:
        for _ in range(units):
            summarise(*tables)

    return {"pandas_pipeline": work}


if __name__ == "__main__":
    tables = make_tables(20_000)
    began = time.monotonic_ns()
    for _ in range(int(700 * float(sys.argv[1])) or 1):
        summarise(*tables)
    print(began, time.monotonic_ns())
