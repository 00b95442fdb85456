"""Run an asyncio pipeline (source, decoder, slow sink) in which bounded queues give back pressure."""
import asyncio

import numpy as np

CHUNKS = 520


async def source(out):
    rng = np.random.default_rng(21)
    for i in range(CHUNKS):
        await out.put((i, rng.integers(0, 255, 8192).astype(np.uint8)))
        if i % 50 == 0:
            await asyncio.sleep(0.01)
    await out.put(None)


def windows(block, width=1024):
    for start in range(0, block.size - width + 1, width // 2):
        yield block[start:start + width]


async def decoder(inp, out):
    while True:
        item = await inp.get()
        if item is None:
            await out.put(None)
            return
        i, raw = item
        block = raw.astype(np.float64) / 255.0
        feats = np.array([(w.mean(), w.std()) for w in windows(block)])
        await out.put((i, block, feats))


async def sink(inp):
    mean = np.zeros(2)
    count = 0
    batch = []
    while True:
        item = await inp.get()
        if item is None:
            break
        batch.append(item)
        if len(batch) == 40:
            for _, block, feats in batch:
                mean += feats.mean(axis=0) * block.max()
                count += 1
            batch = []
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.007)
    return mean / max(count, 1), count


async def main():
    q1 = asyncio.Queue(maxsize=64)
    q2 = asyncio.Queue(maxsize=48)
    _, _, result = await asyncio.gather(source(q1), decoder(q1, q2), sink(q2))
    print("mean feature", result[0].round(4), "blocks", result[1])


if __name__ == "__main__":
    asyncio.run(main())
