import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Signal:
    def __init__(self):
        self.slots = {}
        self.n = 0

    def connect(self, fn):
        self.n += 1
        self.slots[self.n] = fn
        return self.n

    def disconnect(self, k):
        del self.slots[k]

    def send(self, v):
        for fn in list(self.slots.values()):
            fn(v)


class Dialog:
    def __init__(self, sig, k):
        self.img = np.zeros((40, 40 + k % 10))
        self.sig = sig
        self.token = sig.connect(self.on_value)

    def on_value(self, v):
        self.img[v % 40, v % 40] += 1

    def close(self):
        self.sig.disconnect(self.token)


sig, dialogs, g = Signal(), [], np.random.default_rng(0)
for k in range(int(T * 150)):
    if g.random() < 0.6 and len(dialogs) < 30:
        dialogs.append(Dialog(sig, k))
    elif dialogs:
        dialogs.pop(int(g.integers(len(dialogs)))).close()
    sig.send(k)
    time.sleep(0.006)
print(len(sig.slots) == len(dialogs))
