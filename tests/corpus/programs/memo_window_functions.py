import time
import numpy as np


class Windows:
    _memo = {}

    @classmethod
    def get(cls, kind, n):
        key = kind, n
        if key not in cls._memo:
            cls._memo[key] = getattr(np, kind)(n)
        return cls._memo[key]


def main():
    end = time.monotonic() + 2.9
    i = 0
    while time.monotonic() < end:
        n = (1024, 2048, 4096, 8192, 16384)[i % 5]
        kind = ("hanning", "hamming", "blackman")[i % 3]
        np.abs(np.fft.rfft(np.ones(n) * Windows.get(kind, n))).max()
        i += 1
        time.sleep(0.002)


main()
