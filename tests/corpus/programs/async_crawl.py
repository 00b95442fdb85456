"""Crawl an imaginary site with asyncio tasks, bounded queues and context variables."""
import asyncio
import contextvars
import random

rng = random.Random(14)
job_ctx = contextvars.ContextVar("job")


def fake_body(url):
    r = random.Random(url)
    return "".join(f"<a href='/p/{r.randrange(10**6)}'>" + "text " * 30 + "</a>" for _ in range(40))


async def fetch(url):
    job_ctx.set({"url": url, "tags": [f"tag{i}-{url}" for i in range(20)]})
    await asyncio.sleep(rng.uniform(0.05, 0.4))
    body = fake_body(url)
    return url, [p.split("'")[0] for p in body.split("href='")[1:]], len(body)


async def worker(queue, results):
    while True:
        url = await queue.get()
        task = asyncio.create_task(fetch(url))
        results.append(await task)
        queue.task_done()


async def main():
    total = pages = 0
    for wave in range(6):
        queue = asyncio.Queue(maxsize=200)
        results = []
        workers = [asyncio.create_task(worker(queue, results)) for _ in range(70)]
        for i in range(330):
            await queue.put(f"/w{wave}/{i}")
        await queue.join()
        for w in workers:
            w.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        links = {l for _, ls, _ in results for l in ls}
        total += len(links)
        pages += len(results)
    print("pages", pages, "links", total)


asyncio.run(main())
