import gc
import time
import numpy as np


def search(n):
    table = np.zeros(100_000)

    def visit(k):
        table[k % 1000] += 1
        if k > 1:
            visit(k // 2)

    visit(n)
    return table.sum()


def main():
    end = time.monotonic() + 3.5
    n = 1
    while time.monotonic() < end:
        search(n)
        n += 1
        if n % 25 == 0:
            gc.collect()
        time.sleep(0.004)


main()
