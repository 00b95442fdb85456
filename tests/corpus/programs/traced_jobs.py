"""Process jobs in one long-lived asyncio worker that notes breadcrumbs of its progress in a context variable."""
import asyncio
import contextvars

import numpy as np

_crumb = contextvars.ContextVar("crumb", default=None)


class Crumb:
    __slots__ = ("parent", "name", "tags")

    def __init__(self, parent, name, tags):
        self.parent = parent
        self.name = name
        self.tags = tags


def note(name, **tags):
    _crumb.set(Crumb(_crumb.get(), name, {k: f"{k}={v!r}" for k, v in tags.items()}))


def last_crumbs(n=5):
    names = []
    crumb = _crumb.get()
    while crumb is not None and len(names) < n:
        names.append(crumb.name)
        crumb = crumb.parent
    return names


async def worker(queue, results):
    while True:
        job = await queue.get()
        if job is None:
            return
        index, block = job
        note("start", job=index, size=block.size, origin=f"queue-{index % 7}")
        for part in range(24):
            piece = block[part * 64:(part + 1) * 64]
            note("part", job=index, part=part, mean=float(piece.mean()), low=float(piece.min()), high=float(piece.max()))
        results[index % results.size] += float(block.sum())
        if len(last_crumbs()) > 5:
            raise RuntimeError("trail")
        await asyncio.sleep(0.008)


async def main():
    rng = np.random.default_rng(51)
    queue = asyncio.Queue(maxsize=10)
    results = np.zeros(32)
    task = asyncio.create_task(worker(queue, results))
    for index in range(520):
        await queue.put((index, rng.random(2048)))
    await queue.put(None)
    await task
    print("sum", round(float(results.sum()), 3))


if __name__ == "__main__":
    asyncio.run(main())
