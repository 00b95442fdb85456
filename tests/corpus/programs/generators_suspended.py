import sys
import time
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


def stream(seed):
    state = np.random.default_rng(seed).integers(0, 100, 350)
    try:
        while True:
            state = np.roll(state, 1)
            yield int(state[0])
    finally:
        state = None


class Mux:
    def __init__(self):
        self.streams = []
        self.total = 0

    def open(self, seed):
        g = stream(seed)
        self.total += next(g)
        self.streams.append(g)

    def poll(self):
        for g in self.streams[-8:]:
            self.total += next(g)


m = Mux()
for i in range(int(T * 150)):
    m.open(i)
    m.poll()
    time.sleep(0.006)
print(m.total)
