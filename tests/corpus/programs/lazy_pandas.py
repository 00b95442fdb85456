import time
import numpy as np


def summarise(arr):
    import pandas as pd
    return float(pd.Series(arr).ewm(span=20).mean().iloc[-1])


def plain(arr):
    return float(arr.mean())


def main():
    t0 = time.monotonic()
    acc = 0.0
    i = 0
    while (el := time.monotonic() - t0) < 4.0:
        arr = np.random.default_rng(i).random(8_000)
        acc += plain(arr) if el < 1.6 else summarise(arr)
        i += 1
        time.sleep(0.003)
    print(acc > 0)


main()
