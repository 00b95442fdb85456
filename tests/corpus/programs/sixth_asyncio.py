# server: for each client a watchdog task waits for a "closed" event that only 9 of 10 clients send
import asyncio, time
import numpy as np
rng = np.random.default_rng(25)
background = set()
async def watchdog(cid, closed):
    window = np.zeros(60_000, dtype=np.uint8)  # LEAK
    window[:] = cid % 255
    await closed.wait()
    return int(window.sum())
async def client(cid):
    closed = asyncio.Event()
    t = asyncio.create_task(watchdog(cid, closed))
    background.add(t); t.add_done_callback(background.discard)
    await asyncio.sleep(0.005)
    x = rng.standard_normal((100, 100)) @ rng.standard_normal((100, 100))
    if cid % 10 != 0:
        closed.set()
    return float(x.trace())
async def main():
    t0 = time.monotonic(); s = 0.0
    for i in range(800):
        s += await client(i)
        await asyncio.sleep(max(0, t0 + i * 0.01 - time.monotonic()))
    print(s, len(background))
asyncio.run(main())
