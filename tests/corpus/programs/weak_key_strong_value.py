import time
import weakref
import numpy as np

table = weakref.WeakKeyDictionary()


class Key:
    pass


def attach(i):
    k = Key()
    table[k] = (k, np.arange(11_000) + i)


end = time.monotonic() + 3.2
i = 0
while time.monotonic() < end:
    attach(i)
    i += 1
    time.sleep(0.003)
print(len(table) > 0)
