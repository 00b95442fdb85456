import time
import numpy as np


def main():
    m = np.zeros((1, 2_000))
    end = time.monotonic() + 3.3
    i = 0
    while time.monotonic() < end:
        row = np.cos(np.arange(2_000) * i)
        m = np.vstack([m, row])
        m[-1] -= m[-1].mean()
        i += 1
        time.sleep(0.003)
    return m


matrix = main()
print(matrix.shape[1])
