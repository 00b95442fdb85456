"""Threads and tasks over one pool and many scopes end with exact counters: C12, S37, S42."""

import asyncio
import random
import threading

from runtime.trace import live_objects, statistics

from tlmem.runtime.factories import empty, zeros
from tlmem.runtime.holders import acquire, move, release
from tlmem.runtime.pool import TensorPool
from tlmem.runtime.scope import escape, promote, register, scope, scope_depth
from tlmem.runtime.struct import struct

THREADS = 8
TASKS = 50
STEPS = 40


class Tally:
    """What the workers asked of the pool, to be compared with what it counted."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked = self.found = self.given = 0

    def add(self, asked: int, found: int, given: int) -> None:
        with self.lock:
            self.asked += asked
            self.found += found
            self.given += given


async def work(seed: int, pool: TensorPool, tally: Tally) -> None:
    """One task: random operations, each of which leaves nothing behind when its scope has ended."""
    chance = random.Random(seed)
    asked = found = given = 0
    for _ in range(STEPS):
        size = chance.choice((1, 4, 16))
        with scope(f"task {seed}"):
            a = pool.acquire(size)
            asked += 1
            found += a is not None
            a = zeros(size) if a is None else a
            await asyncio.sleep(0)
            match chance.randrange(6):
                case 0:
                    pool.release(a)
                    given += 1
                case 1:
                    a = escape(a)
                case 2:
                    struct({"a": move(a), "b": [empty(2)]})
                case 3:
                    acquire(a, "cache")
                    await asyncio.sleep(0)
                    release(a, "cache")
                case 4:
                    with scope("inner"):
                        inner = promote(empty(3))
                        await asyncio.sleep(0)
                    register(inner)
                case 5:
                    pool.release(escape(a))
                    given += 1
            assert scope_depth() == 1
        assert scope_depth() == 0
    tally.add(asked, found, given)


async def loop_of(seeds: range, pool: TensorPool, tally: Tally) -> None:
    await asyncio.gather(*(work(seed, pool, tally) for seed in seeds))


def test_eight_threads_with_fifty_tasks_over_one_pool_end_with_exact_counters() -> None:
    pool, tally, problems = TensorPool(5), Tally(), []
    before, first = live_objects(), statistics()
    seeds = [
        range(TASKS * part // THREADS, TASKS * (part + 1) // THREADS) for part in range(THREADS)
    ]

    def body(part: range) -> None:
        try:
            asyncio.run(loop_of(part, pool, tally))
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=body, args=(part,)) for part in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert problems == []
    now = pool.stats()
    assert (
        (now.hits + now.misses, now.hits) == (tally.asked, tally.found) == (TASKS * STEPS, now.hits)
    )
    assert now.puts + now.drops == tally.given
    assert now.size == now.puts - now.hits == len(live_objects() - before) == len(pool._kept)

    pool.clear()
    last = statistics()
    assert live_objects() == before
    assert last.total_count - first.total_count == last.freed_count - first.freed_count
    assert last.total_bytes - first.total_bytes == last.freed_bytes - first.freed_bytes
    assert last.floating == first.floating
