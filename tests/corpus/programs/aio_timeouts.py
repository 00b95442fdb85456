import asyncio
import numpy as np


async def request(i):
    data = np.random.default_rng(i).random(30_000)
    await asyncio.sleep(0.002 if i % 2 else 0.2)
    return data.sum()


async def main():
    loop = asyncio.get_running_loop()
    end = loop.time() + 3.0
    i = late = 0
    while loop.time() < end:
        r = await asyncio.gather(*(asyncio.wait_for(request(i + k), 0.01) for k in range(6)), return_exceptions=True)
        late += sum(isinstance(x, Exception) for x in r)
        i += 6
    print(late > 0)


asyncio.run(main())
