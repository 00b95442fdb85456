"""asyncio client: each request is sent twice, the slower one is cancelled."""
import asyncio
import random
import sys
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
rng = random.Random(2)


async def backend(number):
    body = np.zeros(4000 + number % 3000)
    try:
        await asyncio.sleep(rng.expovariate(1 / 0.03))
        body += number
        return body
    finally:
        await asyncio.sleep(0)


async def hedged(number):
    tasks = {asyncio.create_task(backend(number)) for _ in range(2)}
    done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for p in pending:
        p.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return next(iter(done)).result()


async def worker(inbox, outbox):
    while True:
        number = await inbox.get()
        outbox.put_nowait(await hedged(number))


async def main():
    inbox, outbox = asyncio.Queue(maxsize=20), asyncio.Queue()
    workers = [asyncio.create_task(worker(inbox, outbox)) for _ in range(12)]
    stop, n, checksum = time.monotonic() + T, 0, 0.0
    while time.monotonic() < stop:
        await inbox.put(n)
        n += 1
        await asyncio.sleep(0.003)
        while not outbox.empty():
            checksum += float(outbox.get_nowait()[0])
    for w in workers:
        w.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    print("requests", n, "checksum", checksum)

asyncio.run(main())
