"""Keep web sessions with an idle timeout while traffic ramps up in the morning and reaches a plateau."""
import time
from collections import OrderedDict

import numpy as np

IDLE = 160


class Session:
    def __init__(self, uid, now):
        self.uid = uid
        self.last = now
        self.history = []
        self.profile = np.full(1500, float(uid % 97))

    def click(self, now, page):
        self.last = now
        self.history.append((now, page))
        if len(self.history) > 20:
            self.history = self.history[-10:]
        self.profile[page % 1500] += 1.0


class Store:
    def __init__(self):
        self.by_uid = OrderedDict()
        self.expired = 0

    def touch(self, uid, now):
        session = self.by_uid.get(uid)
        if session is None:
            session = self.by_uid[uid] = Session(uid, now)
        else:
            self.by_uid.move_to_end(uid)
        return session

    def expire(self, now):
        while self.by_uid:
            uid, session = next(iter(self.by_uid.items()))
            if now - session.last <= IDLE:
                break
            del self.by_uid[uid]
            self.expired += 1


def main():
    rng = np.random.default_rng(17)
    store = Store()
    uid = 0
    peak = 0
    for now in range(900):
        load = min(1.0, 0.15 + now / 300.0)
        for _ in range(rng.poisson(5 * load)):
            if rng.random() < 0.35 or not store.by_uid:
                uid += 1
                who = uid
            else:
                who = max(1, uid - int(rng.exponential(40)))
            store.touch(who, now).click(now, int(rng.integers(0, 4000)))
        if now % 10 == 0:
            store.expire(now)
        peak = max(peak, len(store.by_uid))
        time.sleep(0.005)
    print("users", uid, "expired", store.expired, "live", len(store.by_uid), "peak", peak)


if __name__ == "__main__":
    main()
