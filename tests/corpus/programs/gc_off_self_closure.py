import gc
import time
import numpy as np


def solve(n):
    table = np.zeros(62_500)

    def rec(k):
        table[k] = k
        return 1 if k == 0 else rec(k - 1) + 1

    return rec(n)


def main():
    gc.disable()
    end = time.monotonic() + 3.9
    c = 0
    while time.monotonic() < end:
        c += solve(30)
        time.sleep(0.015)
    return c


print(main() > 0)
