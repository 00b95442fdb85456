"""Rate-limit API clients with per-client sliding windows and eviction of idle clients."""
import math
import random
import time
from collections import deque

WINDOW = 25.0
LIMIT = 40
rng = random.Random(64)


class Limiter:
    def __init__(self):
        self.windows = {}

    def allow(self, client, now):
        w = self.windows.get(client)
        if w is None:
            w = self.windows[client] = deque()
        while w and w[0][0] < now - WINDOW:
            w.popleft()
        if len(w) >= LIMIT:
            return False
        w.append((now, f"{client}:{now:.6f}"))
        return True

    def evict_idle(self, now):
        idle = [c for c, w in self.windows.items() if not w or w[-1][0] < now - WINDOW]
        for c in idle:
            del self.windows[c]
        return len(idle)


def main():
    lim = Limiter()
    ok = rejected = evicted = 0
    for tick in range(180):
        now = float(tick)
        load = int(700 + 600 * math.sin(tick / 180 * 2 * math.pi * 2.5))
        for k in range(load):
            if rng.random() < 0.2:
                client = f"10.0.0.{rng.randrange(20)}"
            else:
                client = f"10.{rng.randrange(200)}.{rng.randrange(250)}.{tick // 20}"
            if lim.allow(client, now + k / load):
                ok += 1
            else:
                rejected += 1
        if tick % 5 == 0:
            evicted += lim.evict_idle(now)
        time.sleep(0.038)
    print(ok, rejected, evicted, len(lim.windows))


main()
