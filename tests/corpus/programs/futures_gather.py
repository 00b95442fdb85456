import time
from concurrent.futures import ThreadPoolExecutor
import numpy as np


def simulate(seed):
    rng = np.random.default_rng(seed)
    time.sleep(0.01)
    return rng.random(50_000).cumsum()


def main():
    with ThreadPoolExecutor(3) as ex:
        futs = [ex.submit(simulate, s) for s in range(300)]
        finals = [float(f.result()[-1]) for f in futs]
        del futs
    t0 = time.monotonic()
    acc = 0.0
    while time.monotonic() - t0 < 2.5:
        finals.sort(key=lambda v: -v)
        acc += finals[0]
        finals.sort()
        time.sleep(0.001)
    print(acc > 0)


main()
