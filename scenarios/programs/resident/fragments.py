"""Arrays of 96 kB dropped between small ones that stay: the heap cannot shrink."""

import time

import numpy as np


def main() -> None:
    stays, goes = [], []
    for _ in range(40):
        for _ in range(15):
            goes.append(np.ones(12_000))
            stays.append(np.ones(3_000))
        time.sleep(0.008)
    goes.clear()
    time.sleep(0.1)
    goes = [np.ones(15_000) for _ in range(100)]
    time.sleep(0.2)
    print(len(stays), len(goes))


if __name__ == "__main__":
    main()
