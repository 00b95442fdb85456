import random
import sys
import time

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Bucket:
    def __init__(self, ip, now):
        self.ip = ip
        self.tokens = 10.0
        self.updated = now
        self.history = [now]

    def take(self, now):
        self.tokens = min(10.0, self.tokens + (now - self.updated) * 0.1)
        self.updated = now
        self.history.append(now)
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class Limiter:
    def __init__(self):
        self.buckets = {}

    def allow(self, ip, now):
        b = self.buckets.get(ip)
        if b is None:
            b = self.buckets[ip] = Bucket(ip, now)
        return b.take(now)


lim, r = Limiter(), random.Random(4)
ok = 0
for now in range(int(T * 200)):
    for _ in range(8):
        ip = ".".join(str(r.randrange(256)) for _ in range(4))
        ok += lim.allow(ip, now)
    time.sleep(0.0044)
print(ok, len(lim.buckets))
