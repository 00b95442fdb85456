import asyncio
import numpy as np


async def produce(q, end):
    loop = asyncio.get_running_loop()
    i = 0
    while loop.time() < end:
        await q.put(np.arange(20_000) + i)
        i += 1
        await asyncio.sleep(0.001)
    await q.put(None)


async def square(q, r):
    while (a := await q.get()) is not None:
        await r.put(a * a)
    await r.put(None)


async def consume(r):
    s = 0
    while (a := await r.get()) is not None:
        s += int(a[0])
        await asyncio.sleep(0.002)
    return s


async def main():
    end = asyncio.get_running_loop().time() + 2.8
    q, r = asyncio.Queue(30), asyncio.Queue(10)
    res = await asyncio.gather(produce(q, end), square(q, r), consume(r))
    print(res[2] > 0)


asyncio.run(main())
