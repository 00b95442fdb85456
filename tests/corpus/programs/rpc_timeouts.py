"""asyncio RPC client: a call that times out stays in the table of pending calls."""
import asyncio
import itertools
import random
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(14)


class Client:
    def __init__(self):
        self.ids = itertools.count()
        self.pending = {}
        self.timeouts = 0

    async def call(self, size):
        call_id = next(self.ids)
        request = np.arange(size, dtype=np.float32)
        fut = asyncio.get_running_loop().create_future()
        self.pending[call_id] = (fut, request)
        if rng.random() > 0.15:
            asyncio.get_running_loop().call_later(0.02 * rng.random(), self.reply, call_id)
        try:
            return await asyncio.wait_for(fut, 0.06)
        except asyncio.TimeoutError:
            self.timeouts += 1
            return None

    def reply(self, call_id):
        fut, request = self.pending.pop(call_id)
        if not fut.done():
            fut.set_result(request[::2].copy())


async def main():
    client, running, n = Client(), set(), 0
    stop = time.monotonic() + T
    while time.monotonic() < stop:
        task = asyncio.create_task(client.call(2000 + n % 1500))
        running.add(task)
        task.add_done_callback(running.discard)
        n += 1
        await asyncio.sleep(0.004)
    await asyncio.gather(*running)
    print("calls", n, "timeouts", client.timeouts, "pending", len(client.pending))

asyncio.run(main())
