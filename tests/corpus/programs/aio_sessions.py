import asyncio
import random
import numpy as np

sessions = {}


async def session(sid):
    sessions[sid] = np.zeros(50_000)
    try:
        for _ in range(random.randrange(2, 8)):
            sessions[sid] += 1.0
            await asyncio.sleep(0.005)
    finally:
        del sessions[sid]


async def main():
    random.seed(2)
    loop = asyncio.get_running_loop()
    end = loop.time() + 3.4
    tasks = set()
    sid = 0
    while loop.time() < end:
        if len(tasks) < 20:
            t = asyncio.create_task(session(sid))
            tasks.add(t)
            t.add_done_callback(tasks.discard)
            sid += 1
        await asyncio.sleep(0.002)
    await asyncio.gather(*tasks)


asyncio.run(main())
print(len(sessions))
