"""Bugs of the seeds about pools, slots, devices and meters: B4, B5, B13, B18, B19, B20.

docs/bugs.md says what each of them was.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from runtime.exits import each_way_out, recorded
from runtime.things import Poolable
from runtime.trace import live_objects, statistics

from tlmem.events import Kind
from tlmem.runtime.device import Device, device, devices, limit_device
from tlmem.runtime.errors import AlreadyPooled, StillHeld, UseAfterFree
from tlmem.runtime.ownership.frame import frame, get_buffer
from tlmem.runtime.ownership.holders import acquire, move, release
from tlmem.runtime.ownership.pool import TensorPool
from tlmem.runtime.ownership.scope import escape, promote, register, scope
from tlmem.runtime.ownership.struct import struct
from tlmem.runtime.tensors.factories import empty, full, ones, zeros
from tlmem.runtime.tensors.interop import from_numpy

USABLE = [each.name for each in devices() if each.available]


@pytest.fixture(params=USABLE)
def usable(request: pytest.FixtureRequest) -> Iterator[Device]:
    """Each device that can be used here, with its first policy restored afterwards."""
    found = device(request.param)
    yield found
    found.policy("bounded" if found.name == "cpu" else "direct")
    found.trim()


# ---- B4: one buffer, two owners ----


@each_way_out
def test_b4_a_tensor_of_a_scope_that_is_pooled_is_not_freed_by_the_scope(leave, trace) -> None:
    """The example in the README of ts-torch: its scope then freed what the pool kept."""
    pool = TensorPool()
    with trace() as t:

        def work() -> None:
            a = full(4, 3.0)
            t.name(a=a)
            pool.release(a)

        leave(scope("s"), work)
        assert pool.stats().size == 1
        again = pool.acquire(4)
        assert (again.tolist(), pool.acquire(4)) == ([3.0] * 4, None)
        del again

    assert t.of("a").count("POOL_PUT") == t.of("a").count("POOL_HIT") == 1
    assert t.of("a").count("FREE") == 1
    recorded(trace)


def test_b4_no_two_that_are_out_ever_share_memory_whatever_is_put_back_twice(trace) -> None:
    pool = TensorPool(max_per_key=8)
    refused = 0
    with trace() as t:
        out = [empty(16) for _ in range(8)]
        for number in range(40):
            pool.release(out[number % 8])
            for wrong in (pool, TensorPool()):
                with pytest.raises(AlreadyPooled):
                    wrong.release(out[number % 8])
                refused += 1
            taken = pool.acquire(16)
            out[number % 8] = empty(16) if taken is None else taken
            for mark, each in enumerate(out):
                each.fill(mark)
            assert [each[0].item() for each in out] == list(range(8))
            assert len({each.handle for each in out}) == 8
        out.clear()
        del taken, each

    assert t.misuses() == [(name, "double pool") for name, _ in t.misuses()]
    assert t.count("MISUSE") == refused == 80
    assert len(t.rows("POOL_PUT")) == len(t.rows("POOL_HIT")) == 40
    recorded(trace)


def test_b4_a_thing_of_others_is_not_kept_twice_either() -> None:
    pool, thing = TensorPool(), Poolable()
    pool.release(thing)
    with pytest.raises(AlreadyPooled):
        pool.release(thing)

    assert (pool.acquire(2), pool.acquire(2)) == (thing, None)


# ---- B5: a slot's buffer in use when the slot grew ----


@each_way_out
def test_b5_a_buffer_that_a_larger_one_replaced_is_valid_until_its_frame_ends(leave, trace) -> None:
    views = []
    with trace() as t:

        def work() -> None:
            for number, size in enumerate((16, 256, 4096, 1 << 21)):
                view = get_buffer(0, size).tensor(4)
                view.fill(number)
                views.append(view)
                assert [each.tolist() for each in views] == [[n] * 4 for n in range(number + 1)]

        leave(frame(1, "f"), work)

    kinds = [kind for kind, _ in t.pairs("SLOT_GROW", "FREE", "SCOPE_EXIT", "FRAME_EXIT")]
    assert kinds == ["SLOT_GROW"] * 3 + ["FREE"] * 4 + ["SCOPE_EXIT"] + ["FREE"] * 4 + [
        "FRAME_EXIT"
    ]
    for view in views:
        with pytest.raises(UseAfterFree, match="frame 'f'"):
            view.tolist()
    recorded(trace)


def test_b5_each_call_of_a_recursion_grows_its_own_slot() -> None:
    def call(depth: int) -> None:
        with frame(1):
            mine = get_buffer(0, 64 << depth).tensor(4)
            mine.fill(depth)
            if depth < 6:
                call(depth + 1)
            larger = get_buffer(0, 1 << 16).tensor(4)
            larger.fill(-1)
            assert mine.tolist() == [float(depth)] * 4

    before = live_objects()
    call(0)
    assert live_objects() == before


# ---- B13: a free list that only grows ----


def once_viewed(a):
    with scope("views"):
        a.reshape(2, 2)[1].fill(1.0)
    return a


STATES = {
    "as it was": lambda a: a,
    "written to": lambda a: a.fill(7.0),
    "once a base of views": once_viewed,
    "once held": lambda a: (acquire(a, "x"), release(a, "x"), a)[2],
    "once lent": lambda a: (a.numpy(), a)[1],
    "moved": move,
    "escaped": lambda a: a.escape(),
}


@pytest.mark.parametrize("state", STATES)
def test_b13_what_happened_to_a_tensor_is_no_part_of_its_key(state: str, trace) -> None:
    pool = TensorPool()
    with trace() as t:
        for number in range(10):
            with scope("step"):
                a = pool.acquire(4) if number else ones(4)
                assert a is not None
                a = STATES[state](a)
                pool.release(a)
                del a
                assert pool.keys() == ["float32:[4]"]
                assert (pool.stats().size, pool.stats().misses) == (1, 0)

    assert t.rows("POOL_MISS") == []
    assert len(t.rows("POOL_HIT")) == 9
    recorded(trace)


def test_b13_a_pool_that_nobody_asks_ends_at_its_limit_and_frees_what_comes() -> None:
    pool = TensorPool(max_per_key=5)
    first = statistics()
    for _ in range(50):
        pool.release(empty(8))
    now = statistics()

    assert (pool.stats().size, pool.stats().drops, pool.stats().hit_rate) == (5, 45, 0.0)
    assert now.current_bytes - first.current_bytes == 5 * 32
    assert now.freed_count - first.freed_count == 45


def test_b13_what_a_device_keeps_stops_growing(usable: Device) -> None:
    for policy in ("bounded", "persistent-reusing"):
        usable.policy(policy)
        kept = []
        for _ in range(5):
            for size in (100, 1000, 10_000):
                empty(size, device=usable)
            kept.append((usable.buffers().free_count, usable.buffers().free_bytes))
        assert kept == kept[:1] * 5
        assert usable.buffers().free_count > 0


# ---- B18: given back to another allocator ----


def test_b18_each_block_goes_back_to_the_device_it_came_from(trace) -> None:
    for name in USABLE:
        device(name).policy("direct")
    limit = limit_device("cpu")
    try:
        with trace() as t:
            with scope("s"):
                made = [zeros(5000, device=each) for each in (*USABLE, limit)]
                made += [made[0].to(limit), made[-1].to("sim-metal")]
                escape(made[1])
                held = struct([made[0]])
                escape(held)
            del held
            made.clear()
    finally:
        device("cpu").policy("bounded")
    limit.close()

    assert t.misuses() == []
    table = recorded(trace).devices.set_index("name")
    assert set(USABLE) <= set(table.index)
    assert (table["alloc_count"] > 0).all()
    assert (table["alloc_count"] == table["free_count"]).all()
    assert (table["alloc_bytes"] == table["free_bytes"]).all()
    assert (table["live_bytes"] == 0).all()


def test_b18_memory_of_numpy_goes_back_to_numpy() -> None:
    array = np.arange(1000, dtype=np.float32)
    first = device("cpu").stats()
    with scope("s"):
        a = from_numpy(array)
        a += 1
    with pytest.raises(UseAfterFree):
        a.tolist()

    assert device("cpu").stats() == first
    assert array.sum() == np.arange(1000).sum() + 1000


@pytest.mark.parametrize("lent", ["numpy", "memoryview", "view of NumPy"])
def test_b18_memory_that_is_lent_is_freed_by_nobody_else(lent: str) -> None:
    a = full(4, 2)
    other = {"numpy": a.numpy, "memoryview": lambda: memoryview(a)}.get(lent, a[1:].numpy)()
    with pytest.raises(StillHeld, match="lent out"):
        a.free()
    del other
    a.free()
    assert not a.alive


# ---- B19: growth below the tensors ----


def test_b19_a_driver_that_keeps_memory_shows_in_its_own_figure_and_not_in_the_tensors() -> None:
    simulated = device("sim-metal")
    simulated.policy("direct")
    first, before = statistics(), simulated.stats()
    for _ in range(20):
        empty(4096, device=simulated)
    now, after = statistics(), simulated.stats()

    assert now.current_bytes == first.current_bytes
    assert after.current_bytes == before.current_bytes
    # 64 bytes of each block are the runtime's, and this driver rounds to 256.
    assert after.driver_bytes - before.driver_bytes == 20 * (16384 + 256)


def test_b19_a_policy_that_reuses_keeps_the_drivers_figure_flat() -> None:
    simulated = device("sim-metal")
    simulated.policy("persistent-reusing")
    try:
        empty(4096, device=simulated)
        before = simulated.stats()
        for _ in range(20):
            empty(4096, device=simulated)
        assert simulated.stats().driver_bytes == before.driver_bytes
        assert simulated.stats().total_count == before.total_count
    finally:
        simulated.policy("direct")


def test_b19_the_cpu_gives_back_all_that_it_took() -> None:
    cpu = device("cpu")
    cpu.policy("direct")
    try:
        before = cpu.stats()
        for size in (1, 1000, 100_000):
            empty(size)
        after = cpu.stats()
    finally:
        cpu.policy("bounded")

    assert (after.current_bytes, after.current_count) == (
        before.current_bytes,
        before.current_count,
    )
    assert after.driver_bytes == before.driver_bytes
    assert after.total_count - before.total_count == 3


# ---- B20: meters that were wrong ----


def busy(pool: TensorPool) -> None:
    """A bit of everything that counts bytes."""
    a = ones(100)
    b = pool.acquire(50)
    b = empty(50) if b is None else b
    acquire(a, "x")
    kept = escape(struct({"a": a, "b": [b[1:], b + 1]}))
    with scope("inner"):
        passed = promote(empty(7))
    register(passed)
    release(a, "x")
    with frame(2):
        get_buffer(0, 10)
        get_buffer(0, 1 << 20)
    del kept
    pool.release(empty(50))


@each_way_out
def test_b20_on_each_prefix_what_was_allocated_and_not_freed_is_alive(leave, trace) -> None:
    pool = TensorPool()
    before, first = live_objects(), statistics()
    with trace():
        for _ in range(3):
            leave(scope("s"), lambda: busy(pool))
        alive = live_objects()
        middle = statistics()
    recording = recorded(trace)

    events = recording.events
    lives = events[events["kind"].isin([Kind.ALLOC, Kind.FREE]) & (events["device"] >= 16)]
    sizes: dict[int, int] = {}
    made = freed = 0
    for kind, handle, arg in lives[["kind", "address", "arg"]].itertuples(index=False):
        if kind == Kind.ALLOC:
            assert handle not in sizes, "allocated while it is alive"
            sizes[handle] = arg
            made += arg
        else:
            assert handle in sizes, "freed while it is not alive"
            freed += sizes.pop(handle)
        assert made - freed == sum(sizes.values())
    assert set(sizes) == alive - before
    assert made - freed == middle.current_bytes - first.current_bytes > 0
    assert made == middle.total_bytes - first.total_bytes
    assert freed == middle.freed_bytes - first.freed_bytes
    pool.clear()


def test_b20_bytes_are_counted_once_when_they_are_freed_and_never_for_views() -> None:
    first = statistics()
    with scope("s"):
        a = ones((10, 10))
        views = [a[n] for n in range(10)] + [a.reshape(100), a.transpose()]
        array = a.numpy()
        during = statistics()
        assert during.current_bytes - first.current_bytes == 400
        del views, array
    now = statistics()

    assert now.freed_bytes - first.freed_bytes == 400
    assert now.current_bytes == first.current_bytes


def test_b20_a_device_says_what_is_out_now_and_not_the_most_there_ever_was() -> None:
    cpu = device("cpu")
    cpu.policy("direct")
    try:
        before = cpu.stats().current_bytes
        a = empty(1 << 18)
        high = cpu.stats()
        del a
        low = cpu.stats()
    finally:
        cpu.policy("bounded")

    assert high.current_bytes - before == (1 << 20) + 64
    assert low.current_bytes == before
    assert low.peak_bytes >= high.current_bytes
