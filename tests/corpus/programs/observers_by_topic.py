import time
import numpy as np


class Topic:
    subs = {}

    @classmethod
    def subscribe(cls, name, obs):
        cls.subs.setdefault(name, set()).add(obs)

    @classmethod
    def unsubscribe(cls, name, obs):
        cls.subs.get(name, set()).discard(obs)


class Observer:
    def __init__(self, name):
        self.name = name
        self.window = np.random.default_rng(len(name)).random(31_250)
        Topic.subscribe(name, self)

    def close(self):
        Topic.unsubscribe(self.name.upper(), self)


def main():
    t0 = time.monotonic()
    n = 0
    while time.monotonic() - t0 < 4.3:
        o = Observer(f"topic{n % 9}")
        o.window.sort()
        o.close()
        n += 1
        time.sleep(0.012)


main()
