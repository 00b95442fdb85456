"""Eight threads and fifty tasks over one pool and many scopes: every counter is exact at the end.

With a recording, what was written is replayed event by event, and read back with the tables.
"""

import asyncio
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from runtime.trace import Trace, live_objects, statistics

import tlmem
from tlmem.recorder import Recorder
from tlmem.runtime import core
from tlmem.runtime.ownership.frame import framed, get_buffer
from tlmem.runtime.ownership.holders import acquire, move, release
from tlmem.runtime.ownership.pool import TensorPool
from tlmem.runtime.ownership.scope import escape, promote, register, scope
from tlmem.runtime.ownership.struct import struct
from tlmem.runtime.tensors.factories import empty, ones, zeros

THREADS = 8
TASKS = 50
ROUNDS = 12  # of each, while recorded
STEPS = (THREADS + TASKS) * ROUNDS
FLOATING = core.FLOATING_HOLDER
Events = list[tuple[str, int, int, int, int]]


class Work:
    """What one thread or task does, and what the pool must have counted for it."""

    asked = puts = 0

    def __init__(self, seed: int, pool: TensorPool, shared: Any) -> None:
        self.random = random.Random(seed)
        self.name = f"worker {seed}"
        self.pool, self.shared = pool, shared
        self.kept: list[Any] = []

    def step(self) -> None:
        """Some of everything, in a scope with a scope in it."""
        with scope(self.name):
            x = ones(self.random.randrange(1, 20))
            acquire(self.shared, self.name)
            with scope("inner"):
                y = escape(register(x + 1) * 2)
                model = struct({"x": x, "y": [y, move(empty(3))]}, name="Model")
                model["x"] = zeros(2)
                array = y[:1].numpy()
                self.buffers()
            assert array[0] == 4
            for _ in range(self.random.randrange(3)):
                self.use_pool()
            if self.random.random() < 0.2:
                self.kept.append(register(promote(empty(7))).escape())
            release(self.shared, self.name)
        assert not x.alive and y.alive
        if len(self.kept) > 3:
            del self.kept[self.random.randrange(3)]

    @framed(2)
    def buffers(self) -> None:
        get_buffer(0, 64).tensor(4).fill(1)
        get_buffer(0, 256)
        get_buffer(1, 0)

    def take(self, size: int) -> Any:
        return self.pool.acquire(size)

    def use_pool(self) -> None:
        """Takes two of a size and gives them back filled with a number of its own."""
        size = self.random.randrange(1, 5)
        mine = [
            empty(size) if each is None else each for each in (self.take(size), self.take(size))
        ]
        number = self.random.randrange(1000)
        for each in mine:
            each.fill(number)
        assert len({each.handle for each in mine}) == 2
        for each in mine:
            assert set(each.tolist()) == {number}
            self.pool.release(each)
        self.asked += 2
        self.puts += 2


def run_threads(pool: TensorPool, shared: Any, rounds: int) -> list[Work]:
    """Every thread does its rounds; the first exception of any is raised."""
    work = [Work(seed, pool, shared) for seed in range(THREADS)]
    errors: list[BaseException] = []

    def run(mine: Work) -> None:
        try:
            for _ in range(rounds):
                mine.step()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(each,)) for each in work]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if errors:
        raise errors[0]
    return work


def run_tasks(pool: TensorPool, shared: Any, rounds: int) -> list[Work]:
    """The same in tasks of one loop, which change places in the middle of scopes."""
    work = [Work(100 + seed, pool, shared) for seed in range(TASKS)]

    async def run(mine: Work) -> None:
        for _ in range(rounds):
            with scope("task"):
                before = ones(2)
                await asyncio.sleep(0)
                mine.step()
                await asyncio.sleep(0.0001 * mine.random.randrange(3))
                assert before.tolist() == [1, 1]

    async def main() -> None:
        await asyncio.gather(*(run(each) for each in work))

    asyncio.run(main())
    return work


def everything(rounds: int) -> None:
    """Threads first, then tasks; the counters agree in between, and with nothing at the end."""
    others = len(live_objects())  # that test modules keep
    pool, shared = TensorPool(3, name="shared"), zeros(1)
    for run in (run_threads, run_tasks):
        before = pool.stats()
        work = run(pool, shared, rounds)
        after = pool.stats()
        assert after.hits + after.misses - before.hits - before.misses == sum(w.asked for w in work)
        assert after.puts + after.drops - before.puts - before.drops == sum(w.puts for w in work)
        assert after.size == after.puts - after.hits == len(pool) == sum(after.by_key.values())
        kept = sum(len(each.kept) for each in work)
        now = statistics()
        assert now.current_count == now.total_count - now.freed_count == len(live_objects())
        assert len(live_objects()) == others + 1 + after.size + kept
        assert shared.holders() == [core.holder_text(shared._holder)]
        work.clear()


def test_threads_and_tasks_over_one_pool_leave_exact_counters() -> None:
    before = statistics()
    everything(rounds=60)
    after = statistics()
    assert after.acquires - before.acquires > 10_000
    assert after.current_bytes == before.current_bytes
    assert after.total_bytes - before.total_bytes == after.freed_bytes - before.freed_bytes
    assert after.floating == before.floating


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same work, recorded from its beginning to its end."""
    path = tmp_path_factory.mktemp("stress") / "stress.tlm"
    with Recorder(path, rss_interval=10):
        everything(ROUNDS)
    return path


def test_recorded_events_replayed_give_every_count_and_every_holder(recording: Path) -> None:
    trace = Trace()
    trace.fill(recording)
    counts: dict[int, int] = {}
    held: dict[int, Counter[int]] = {}
    ended: set[int] = set()
    for kind, subject, arg, count, _ in trace._events:
        if kind == "ALLOC":
            assert subject not in held and subject not in ended
            held[subject], counts[subject] = Counter([FLOATING]), 1
        elif kind in ("ACQUIRE", "RELEASE"):
            counts[subject] += 1 if kind == "ACQUIRE" else -1
            change(held[subject], None if kind == "ACQUIRE" else arg, arg)
        elif kind in ("UNREGISTER", "PROMOTE"):
            change(held[subject], arg, FLOATING)
        elif kind in ("REGISTER", "ESCAPE"):
            change(held[subject], giver(kind, held[subject]), arg)
        elif kind == "FREE":
            assert counts.pop(subject) == arg == held.pop(subject).total()
            ended.add(subject)
            assert count == 0
            continue
        if kind in ("ALLOC", "ACQUIRE", "RELEASE", "REGISTER", "UNREGISTER", "ESCAPE", "PROMOTE"):
            assert count == counts[subject] == held[subject].total(), (kind, subject, count)
    assert counts == {} and len(ended) > 5_000
    # Each step registers one tensor that its scope has already; that is told and changes nothing.
    assert Counter(what for _, what in trace.misuses()) == {"double register": STEPS}


def change(held: Counter[int], old: int | None, new: int) -> None:
    """A count goes from one holder to another; ``old == new``: it goes, None: it comes."""
    if old is not None:
        assert held[old] > 0, (core.holder_text(old), held)
        held[old] -= 1
    if old != new:
        held[new] += 1
    held += Counter()


def giver(kind: str, held: Counter[int]) -> int:
    """Who gives a count that is registered (it floats) or escapes (a scope)."""
    if kind == "REGISTER":
        return FLOATING
    return next(holder for holder in held if holder >> 56 == core.SCOPE)


def test_recorded_scopes_are_entered_and_left_once_and_freed_what_they_say(recording: Path) -> None:
    trace = Trace()
    trace.fill(recording)
    entered = Counter(row[1] for row in trace._events if row[0] == "SCOPE_ENTER")
    left = Counter(row[1] for row in trace._events if row[0] == "SCOPE_EXIT")
    assert entered == left and set(entered.values()) == {1}
    assert len(entered) == STEPS * 3 + TASKS * ROUNDS
    freed = sum(row[2] for row in trace._events if row[0] == "SCOPE_EXIT")
    by_scopes = Counter(
        (row[1], row[2]) for row in trace._events if row[0] == "RELEASE" and row[2] >> 56 == 2
    )
    last = {row[1]: row for row in trace._events if row[0] == "RELEASE" and row[3] == 0}
    ended_by_scopes = sum(row[2] >> 56 == core.SCOPE for row in last.values())
    forced = trace.count("FREE") - len(last)
    assert set(by_scopes.values()) == {1}
    assert ended_by_scopes <= freed <= ended_by_scopes + forced


def test_tables_read_back_agree_with_the_counters(recording: Path) -> None:
    found = tlmem.read(recording)
    assert found.problems == [] and found.complete and found.lost_events == 0
    assert found._ownership[1] == []
    objects = found.objects
    assert len(objects) > 5_000
    ledger = found.holders
    assert len(ledger) > len(objects)
    assert len(found.scopes) == STEPS * 3 + TASKS * ROUNDS
    assert len(found.misuses) == STEPS
