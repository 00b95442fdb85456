import asyncio
import sys
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


async def sensor(q, n):
    for i in range(n):
        for k in range(5):
            q.put_nowait((k, np.array([i, k, i * k, i - k] * 12, dtype=np.float32)))
        await asyncio.sleep(0.0058)
    return n * 5


async def sink(q, acc):
    while True:
        for _ in range(4):
            k, v = await q.get()
            acc[k] = acc.get(k, 0.0) + float(v[0])
        await asyncio.sleep(0.0058)


async def main():
    q, acc = asyncio.Queue(), {}
    s = asyncio.create_task(sink(q, acc))
    n = await sensor(q, int(T * 150))
    s.cancel()
    print(n, len(acc))

asyncio.run(main())
