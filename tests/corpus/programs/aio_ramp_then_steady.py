import asyncio
import numpy as np


class Session:
    def __init__(self, k):
        self.k = k
        self.state = np.zeros(100_000)

    async def run(self, end):
        loop = asyncio.get_running_loop()
        while loop.time() < end:
            self.state = self.state * 0.5 + self.k
            await asyncio.sleep(0.03)


async def main():
    loop = asyncio.get_running_loop()
    end = loop.time() + 3.8
    tasks = []
    for k in range(30):
        tasks.append(asyncio.create_task(Session(k).run(end)))
        await asyncio.sleep(0.025)
    await asyncio.gather(*tasks)


asyncio.run(main())
