import asyncio
import numpy as np


async def producer(q, k, end):
    loop = asyncio.get_running_loop()
    i = 0
    while loop.time() < end:
        q.put_nowait(np.ones((50, 100)) * i)
        i += 1
        await asyncio.sleep(0.005 + 0.001 * k)


async def consumer(q, end):
    loop = asyncio.get_running_loop()
    s = 0.0
    while loop.time() < end:
        s += (await q.get())[0, 0]
        await asyncio.sleep(0.005)
    return s


async def main():
    q = asyncio.Queue()
    end = asyncio.get_running_loop().time() + 3.4
    await asyncio.gather(*(producer(q, k, end) for k in range(3)), consumer(q, end))
    return q


left = asyncio.run(main())
print(left.qsize() > 0)
