import io
import time
import numpy as np
import pandas as pd


def day(d):
    rng = np.random.default_rng(d)
    df = pd.DataFrame({"h": rng.integers(0, 24, 1_500), "c": rng.integers(0, 5, 1_500), "v": rng.random(1_500)})
    return df.pivot_table(index="h", columns="c", values="v", aggfunc="sum")


def main():
    end = time.monotonic() + 2.6
    n = 0
    while time.monotonic() < end:
        days = {d: day(d) for d in range(10)}
        buf = io.StringIO()
        pd.concat(days).describe().to_csv(buf)
        n += len(buf.getvalue())
    print(n > 0)


main()
