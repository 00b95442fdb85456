import asyncio
import numpy as np

archive = {}


async def request(i):
    a = np.arange(5_000) * i
    await asyncio.sleep(0.002)
    return int(a[-1])


async def archiver(end):
    loop = asyncio.get_running_loop()
    k = 0
    while loop.time() < end:
        archive[k] = np.ones((125, 1_000)) * k
        k += 1
        await asyncio.sleep(0.2)


async def main():
    loop = asyncio.get_running_loop()
    end = loop.time() + 5.2
    bg = asyncio.create_task(archiver(end))
    i = 0
    while loop.time() < end:
        await asyncio.gather(*(request(i + k) for k in range(8)))
        i += 8
    await bg


asyncio.run(main())
