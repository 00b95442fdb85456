import asyncio
import random
import sys
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class TTLCache:
    def __init__(self, ttl):
        self.ttl, self.d = ttl, {}

    def get(self, k):
        return self.d.get(k)

    def put(self, k, v):
        self.d[k] = v
        asyncio.get_running_loop().call_later(self.ttl, self.d.pop, k, None)


async def fetch(c, k):
    v = c.get(k)
    if v is None:
        await asyncio.sleep(0.002)
        v = np.random.default_rng(k).random(1500)
        c.put(k, v)
    return float(v[0])


async def main():
    c, r, s = TTLCache(0.3), random.Random(9), 0.0
    for i in range(int(T * 110)):
        s += sum(await asyncio.gather(*(fetch(c, r.randrange(5000)) for _ in range(3))))
        await asyncio.sleep(0.0045)
    print(round(s, 4))

asyncio.run(main())
