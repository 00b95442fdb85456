import sys
import time
import random
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
TTL = 60


class Session:
    def __init__(self, user, now):
        self.user = user
        self.seen = now
        self.scores = np.zeros(400)

    def touch(self, now, k):
        self.seen = now
        self.scores[k % 400] += 1


class Store(dict):
    def purge(self, now):
        for k in [k for k, s in self.items() if now - s.seen > TTL]:
            del self[k]


def main():
    r = random.Random(11)
    store = Store()
    peak = 0
    for now in range(int(T * 170)):
        for _ in range(r.randrange(0, 4)):
            u = r.randrange(10 ** 6)
            store[u] = Session(u, now)
        for u in r.sample(list(store), min(5, len(store))):
            store[u].touch(now, u)
        if now % 10 == 0:
            store.purge(now)
        peak = max(peak, len(store))
        time.sleep(0.0055)
    print("peak", peak)


main()
