import asyncio
import numpy as np

tasks = set()


async def session(i, never):
    state = np.zeros(40_000) + i
    await asyncio.sleep(0.003)
    if i % 5 == 0:
        await never.wait()
    return state.sum()


async def main():
    never = asyncio.Event()
    loop = asyncio.get_running_loop()
    end = loop.time() + 3.6
    i = 0
    while loop.time() < end:
        t = asyncio.create_task(session(i, never))
        tasks.add(t)
        t.add_done_callback(tasks.discard)
        i += 1
        await asyncio.sleep(0.003)


loop = asyncio.new_event_loop()
loop.set_exception_handler(lambda *a: None)
loop.run_until_complete(main())
print(len(tasks) > 0)
