"""Schedule keep-alive pings for device connections that reconnect often, in a simulated event loop."""
import heapq
import itertools
import time

import numpy as np


class Scheduler:
    def __init__(self):
        self.now = 0
        self.heap = []
        self.seq = itertools.count()

    def after(self, delay, func):
        heapq.heappush(self.heap, (self.now + delay, next(self.seq), func))

    def every(self, period, func):
        def fire():
            func()
            self.after(period, fire)

        self.after(period, fire)

    def tick(self):
        self.now += 1
        while self.heap and self.heap[0][0] <= self.now:
            heapq.heappop(self.heap)[2]()


class Connection:
    def __init__(self, device, scheduler):
        self.device = device
        self.alive = True
        self.pings = 0
        self.window = np.zeros(2500)
        scheduler.every(40, lambda: self.ping())

    def ping(self):
        if self.alive:
            self.pings += 1

    def receive(self, rng):
        packet = rng.random(2500)
        self.window *= 0.9
        self.window += packet
        return float(self.window[0])

    def close(self):
        self.alive = False


def main():
    rng = np.random.default_rng(41)
    scheduler = Scheduler()
    devices = {d: Connection(d, scheduler) for d in range(25)}
    total, reconnects = 0.0, 0
    for _ in range(650):
        scheduler.tick()
        for d in rng.integers(0, 25, 4):
            total += devices[int(d)].receive(rng)
        if rng.random() < 0.9:
            d = int(rng.integers(0, 25))
            devices[d].close()
            devices[d] = Connection(d, scheduler)
            reconnects += 1
        time.sleep(0.007)
    print("reconnects", reconnects, "total", round(total, 2))


if __name__ == "__main__":
    main()
