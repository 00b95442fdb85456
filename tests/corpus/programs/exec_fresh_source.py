import time
import numpy as np

ns = {"np": np, "results": {}}


def main():
    end = time.monotonic() + 3.6
    k = 0
    while time.monotonic() < end:
        src = f"results[{k}] = np.full(10_000, {k}.0)"
        exec(src, ns)
        k += 1
        time.sleep(0.006)


main()
print(len(ns["results"]) > 0)
