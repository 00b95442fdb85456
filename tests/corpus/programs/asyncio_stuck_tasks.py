import asyncio
import sys
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Upstream:
    def __init__(self):
        self.waiting = {}

    async def ask(self, rid):
        ev = asyncio.Event()
        self.waiting[rid] = ev
        if rid % 5:
            asyncio.get_running_loop().call_later(0.03, ev.set)
        await ev.wait()
        del self.waiting[rid]


async def request(rid, up, stats):
    body = np.random.default_rng(rid).random(900)
    await up.ask(rid)
    stats.append(float(body.max()))


async def main():
    up, stats, tasks = Upstream(), [], set()
    for rid in range(int(T * 200)):
        t = asyncio.create_task(request(rid, up, stats))
        tasks.add(t)
        t.add_done_callback(tasks.discard)
        await asyncio.sleep(0.0042)
        if len(stats) > 500:
            stats.clear()
    for t in tasks:
        t.cancel()
    print("requests", rid + 1)

asyncio.run(main())
