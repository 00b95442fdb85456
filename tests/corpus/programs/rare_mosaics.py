"""Blocks are stacked by one helper; every 25th stack, 1.6 MB, is kept as a 'preview'."""
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0


def stack(blocks):
    return np.concatenate(blocks)


class Station:
    def __init__(self):
        self.previews = []
        self.mean = 0.0

    def strip(self, k):
        blocks = [np.full((10, 200), k % 7 + i, dtype=float) for i in range(6)]
        s = stack(blocks)
        self.mean = 0.95 * self.mean + 0.05 * float(s.mean())

    def mosaic(self, k):
        blocks = [np.full((100, 400), k + i, dtype=float) for i in range(5)]
        m = stack(blocks)
        self.previews.append(m)
        return m.shape


st = Station()
stop = time.perf_counter() + T
k = 0
while time.perf_counter() < stop:
    st.strip(k)
    if k % 25 == 24:
        st.mosaic(k)
    k += 1
    time.sleep(0.005)
print("strips", k, "mean %.3f" % st.mean)
