import itertools
import time
import numpy as np


def main():
    end = time.monotonic() + 3.3
    src = (np.full(9_000, i, dtype=np.int32) for i in itertools.takewhile(lambda _: time.monotonic() < end, itertools.count()))
    even = (a for a in src if a[0] % 2 == 0)
    scaled = map(lambda a: a / 3, even)
    total = 0.0
    for a in scaled:
        total += a[-1]
        time.sleep(0.001)
    return total


print(main() > 0)
