import time
import numpy as np


class Quantity(np.ndarray):
    def __new__(cls, data, unit):
        obj = np.asarray(data, float).view(cls)
        obj.unit = unit
        return obj

    def __array_finalize__(self, obj):
        self.unit = getattr(obj, "unit", None)


ledger = []


def book(i):
    q = Quantity(np.ones(5_000), "kg")
    ledger.append(q * i)


end = time.monotonic() + 2.8
i = 0
while time.monotonic() < end:
    book(i)
    i += 1
    time.sleep(0.003)
