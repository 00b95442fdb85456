import time
import numpy as np


def main():
    results = [None] * 200
    for sweep in range(5):
        for i in range(200):
            results[i] = np.sqrt(np.arange(8_000) + i + sweep)
            time.sleep(0.003)
    return sum(float(r[0]) for r in results)


print(main() > 0)
