import time
import numpy as np

CACHE = {}


def features(key):
    try:
        return CACHE[key]
    except KeyError:
        pass
    if len(CACHE) >= 400:
        for old in list(CACHE)[:200]:
            del CACHE[old]
    CACHE[key] = out = np.sqrt(np.arange(3_000) + key)
    return out


def main():
    end = time.monotonic() + 3.5
    k = 0
    while time.monotonic() < end:
        features(k)
        features(k // 2)
        k += 1
        if k % 2 == 0:
            time.sleep(0.001)


main()
