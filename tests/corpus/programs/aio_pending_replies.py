"""asyncio RPC client: replies that come after the time-out are never taken from the table."""
import asyncio
import itertools
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0


class Rpc:
    def __init__(self):
        self.ids = itertools.count()
        self.replies = {}
        self.events = {}
        self.inbox = asyncio.Queue()
        self.timeouts = 0

    async def worker(self):
        while True:
            rid, payload, delay = await self.inbox.get()
            asyncio.get_running_loop().call_later(delay, self.finish, rid, payload)

    def finish(self, rid, payload):
        self.replies[rid] = np.convolve(payload, np.ones(9) / 9, mode="same")
        if rid in self.events:
            self.events[rid].set()

    async def call(self, payload, delay):
        rid = next(self.ids)
        ev = self.events[rid] = asyncio.Event()
        await self.inbox.put((rid, payload, delay))
        try:
            await asyncio.wait_for(ev.wait(), 0.02)
        except asyncio.TimeoutError:
            self.timeouts += 1
            return None
        finally:
            del self.events[rid]
        return self.replies.pop(rid)


async def client(rpc, seed, end):
    rng = np.random.default_rng(seed)
    total = 0.0
    while time.perf_counter() < end:
        delay = 0.03 if rng.random() < 0.15 else 0.002
        out = await rpc.call(rng.normal(size=1500), delay)
        if out is not None:
            total += float(out.max())
    return total


async def main():
    rpc = Rpc()
    task = asyncio.create_task(rpc.worker())
    end = time.perf_counter() + T
    totals = await asyncio.gather(*(client(rpc, s, end) for s in range(4)))
    task.cancel()
    print("clients", len(totals), "timeouts", rpc.timeouts > 0)


asyncio.run(main())
