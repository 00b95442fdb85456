import time
import numpy as np


def main():
    held = []
    t0 = time.monotonic()
    last = t0
    i = 0
    target = 30
    while time.monotonic() - t0 < 4.8:
        held.append(np.sqrt(np.arange(12_000) + i))
        i += 1
        time.sleep(0.004)
        if time.monotonic() - last > 0.5:
            last = time.monotonic()
            target += 40
            del held[: max(0, len(held) - target)]
    return held


held = main()
print(len(held) > 0)
