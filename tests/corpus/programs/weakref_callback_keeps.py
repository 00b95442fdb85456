import time
import weakref
import numpy as np


class Device:
    pass


device = Device()


def open_channel(i):
    buf = np.full(12_000, i, dtype=np.float64)
    weakref.finalize(device, buf.fill, 0.0)
    return buf


t0 = time.monotonic()
i = 0
while time.monotonic() - t0 < 3.4:
    ch = open_channel(i)
    ch += 1
    i += 1
    time.sleep(0.003)
print(i > 0)
