"""Polars: hourly reports are sorted and summarised; the sorted frames stay in a list."""
import sys
import time

import numpy as np
import polars as pl

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
ROWS = 4000


def hour(rng, number):
    return pl.DataFrame(
        {
            "station": rng.integers(0, 40, ROWS),
            "value": rng.normal(10, 3, ROWS),
            "flag": rng.random(ROWS) < 0.02,
        }
    ).with_columns(pl.lit(number).alias("hour"))


def tidy(frame):
    return (
        frame.filter(~pl.col("flag"))
        .sort(["station", "value"])
        .with_columns((pl.col("value") - pl.col("value").mean().over("station")).alias("anomaly"))
        .select("station", "value", "anomaly")
    )


def summarise(frame):
    return frame.group_by("station").agg(
        pl.col("value").mean().alias("mean"), pl.col("anomaly").std().alias("std")
    )


class Archive:
    def __init__(self):
        self.frames = []
        self.worst = []

    def add(self, frame):
        self.frames.append(frame)
        self.worst.append(float(summarise(frame)["std"].max()))


def main():
    rng = np.random.default_rng(0)
    archive = Archive()
    start = time.perf_counter()
    number = 0
    while time.perf_counter() - start < T:
        archive.add(tidy(hour(rng, number)))
        number += 1
        time.sleep(0.004)
    print("hours", number > 0, "worst", max(archive.worst) > 0)


main()
