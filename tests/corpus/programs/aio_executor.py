import asyncio
import time
import numpy as np


def blocking(i):
    time.sleep(0.006)
    return np.convolve(np.ones(3_000), np.ones(50)) * i


async def one(sem, i):
    async with sem:
        r = await asyncio.get_running_loop().run_in_executor(None, blocking, i)
        return float(r[100])


async def main():
    sem = asyncio.Semaphore(6)
    tot = 0.0
    t0 = time.monotonic()
    while time.monotonic() - t0 < 3.3:
        tot += sum(await asyncio.gather(*(one(sem, i) for i in range(30))))
    return tot


print(asyncio.run(main()) > 0)
