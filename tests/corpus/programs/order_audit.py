"""Match limit orders in a small exchange and keep an audit trail for the operator console."""
import heapq
import random
import time
from collections import deque

import numpy as np


class Audit:
    def __init__(self, shown=100):
        self.shown = shown
        self.events = deque()

    def record(self, now, kind, **fields):
        self.events.append({"t": now, "kind": kind, "text": f"{kind} at {now}: {fields}", **fields})

    def tail(self):
        n = len(self.events)
        return [self.events[i]["kind"] for i in range(max(0, n - self.shown), n)]


class Book:
    def __init__(self, audit):
        self.bids, self.asks = [], []
        self.audit = audit
        self.trades = 0

    def add(self, now, side, price, qty):
        self.audit.record(now, "order", side=side, price=price, qty=qty)
        heapq.heappush(self.bids if side == "buy" else self.asks, (-price if side == "buy" else price, now, qty))
        while self.bids and self.asks and -self.bids[0][0] >= self.asks[0][0]:
            bid, ask = heapq.heappop(self.bids), heapq.heappop(self.asks)
            self.trades += 1
            self.audit.record(now, "trade", price=ask[0], qty=min(bid[2], ask[2]))

    def trim(self, now):
        self.bids = [b for b in self.bids if b[1] > now - 80]
        self.asks = [a for a in self.asks if a[1] > now - 80]
        heapq.heapify(self.bids)
        heapq.heapify(self.asks)


def main():
    rnd = random.Random(10)
    audit = Audit()
    book = Book(audit)
    ladder = np.zeros(400)
    for now in range(600):
        fair = 100 + 5 * np.sin(now / 80)
        for _ in range(28):
            side = rnd.choice(["buy", "sell"])
            book.add(now, side, round(rnd.gauss(fair, 0.8), 2), rnd.randrange(1, 50))
        if now % 20 == 0:
            book.trim(now)
        snapshot = np.bincount([int(-b[0]) for b in book.bids], minlength=400)[:400]
        ladder = 0.9 * ladder + 0.1 * snapshot
        time.sleep(0.007)
    print("trades", book.trades, "tail", audit.tail().count("trade"), "ladder", round(float(ladder.sum()), 2))


if __name__ == "__main__":
    main()
