"""Bugs of the seeds about scopes that do not occur here: B1, B2, B3, B6.

docs/bugs.md says what each of them was.
"""

from __future__ import annotations

import asyncio

import pytest
from runtime.exits import each_way_out, recorded
from runtime.things import Mock
from runtime.trace import live_objects, statistics

from tlmem.runtime import core
from tlmem.runtime.core import lib
from tlmem.runtime.ownership.frame import arena_empty, frame, framed, get_buffer
from tlmem.runtime.ownership.holders import acquire, move, release
from tlmem.runtime.ownership.pool import TensorPool
from tlmem.runtime.ownership.scope import escape, promote, register, scope, scope_depth, unregister
from tlmem.runtime.ownership.struct import struct
from tlmem.runtime.tensors.factories import empty, full, ones

# ---- B1: a move released what it moved ----


def by_unregister(a, outer):
    return outer.register(unregister(a))


def by_promote(a, outer):
    return outer.register(promote(a))


def by_escape(a, outer):
    return escape(a)


def by_field(a, outer):
    return escape(struct({"field": move(a)}))


def by_pool(a, outer):
    pool = TensorPool()
    pool.release(a)
    return pool


@each_way_out
@pytest.mark.parametrize("hand_over", [by_unregister, by_promote, by_escape, by_field, by_pool])
def test_b1_a_move_out_of_a_scope_releases_nothing(hand_over, leave, trace) -> None:
    new_owner: list[object] = []
    with trace() as t:
        with scope("outer") as outer:

            def work() -> None:
                a = ones(2)
                t.name(a=a)
                new_owner.extend((a.handle, hand_over(a, outer)))

            leave(scope("inner"), work)
            assert len(core.holders_of(new_owner[0])) == 1
        new_owner.clear()

    counts = t.counts("a")
    assert counts == [1] * (len(counts) - 2) + [0, 0]
    assert t.of("a")[-2:] == ["RELEASE", "FREE"]
    assert t.of("a").count("ACQUIRE") == 0
    recorded(trace)


def test_b1_a_tensor_that_is_moved_again_and_again_keeps_its_one_count(trace) -> None:
    with trace() as t:
        a = full(3, 5)
        for number in range(10):
            with scope(f"scope {number}"):
                register(a)
                a = escape(move(register(unregister(a))) if number % 2 else a)
                assert (a.count, a.tolist()) == (1, [5.0] * 3)
        t.name(a=a)
        del a

    assert t.count("FREE") == t.count("RELEASE") == t.count("ALLOC") == 1
    assert t.count("ACQUIRE") == 0
    recorded(trace)


# ---- B2, B3: registered twice ----


@each_way_out
def test_b2_registering_a_live_tensor_again_adds_no_count_without_an_owner(leave, trace) -> None:
    with trace() as t:
        with scope("outer"):
            a = ones(2)
            t.name(a=a)

            def work() -> None:
                for _ in range(3):
                    register(a)
                assert (a.count, len(a.holders())) == (1, 1)

            leave(scope("inner"), work)
            assert a.tolist() == [1.0, 1.0]

    assert t.misuses() == [("a", "double register")] * 3
    assert t.counts("a") == [1, 1, 0, 0]
    recorded(trace)


def test_b2_a_tensor_that_others_hold_is_registered_with_a_record_for_its_count(trace) -> None:
    with trace() as t:
        a = ones(2)
        t.name(a=a)
        acquire(a, "cache")
        with scope("s"):
            register(a)
            assert a.count == len(a.holders()) == 2
        assert a.holders() == ["cache"]
        release(a, "cache")

    assert t.of("a")[-1] == "FREE"
    recorded(trace)


@each_way_out
def test_b3_a_handle_recorded_by_runtime_and_wrapper_is_freed_once(leave, trace) -> None:
    mock = Mock()
    block = scope("s")
    with trace() as t:

        def work() -> None:
            a = empty(1)
            t.name(a=a)
            register(register(a))
            register(register(mock))
            assert block.count == 2

        leave(block, work)

    assert t.of("a") == ["ALLOC", "REGISTER", *["MISUSE"] * 2, "RELEASE", "FREE"]
    assert mock.freed == 1
    assert (block.stats().frees, block.stats().leaked) == (2, 0)
    recorded(trace)


# ---- B6: exits that skipped cleanup ----


def state() -> tuple[object, ...]:
    """What must be the same before and after every iteration."""
    arena = core.ffi.new("tlm_arena_statistics *")
    lib.tlm_arena_stats(arena)
    now = statistics()
    return (
        scope_depth(),
        lib.tlm_frame_depth(),
        live_objects(),
        now.current_bytes,
        now.floating,
        (arena.scope_bytes, arena.slot_bytes),
    )


def tensors() -> None:
    a = ones(4)
    acquire(a, "work")
    release(a, "work")
    struct([a, a[1:], a + 1])


def slots() -> None:
    with frame(2):
        get_buffer(0, 100).tensor(5).fill(1.0)
        get_buffer(1, 1 << 21)
        get_buffer(0, 1000)
        arena_empty(7)


def nested() -> None:
    with scope(), frame(1), scope():
        get_buffer(0, 8)
        tensors()


@each_way_out
@pytest.mark.parametrize("block", [lambda: scope("s"), lambda: frame(1, "f")])
@pytest.mark.parametrize("work", [tensors, slots, nested])
def test_b6_every_iteration_ends_as_it_began(work, block, leave) -> None:
    leave(block(), work)  # a thread makes its arena once
    before = state()
    for _ in range(25):
        leave(block(), work)
        assert state() == before


def out_of_the_middle(way: str) -> None:
    """Leaves three blocks at once."""
    for _ in range(2):
        with scope("outer"), frame(1), scope("inner"):
            get_buffer(0, 64)
            empty(3)
            match way:
                case "return":
                    return
                case "break":
                    break
                case "continue":
                    continue
                case "exception":
                    raise KeyError


@pytest.mark.parametrize("way", ["return", "break", "continue", "exception", "end"])
def test_b6_leaving_several_blocks_at_once_leaves_each_of_them(way: str, trace) -> None:
    before = live_objects()
    with trace() as t:
        try:
            out_of_the_middle(way)
        except KeyError:
            pass

    assert (scope_depth(), live_objects()) == (0, before)
    assert t.count("SCOPE_ENTER") == t.count("SCOPE_EXIT") > 0
    assert t.count("FRAME_ENTER") == t.count("FRAME_EXIT") > 0
    assert t.count("ALLOC") == t.count("FREE") > 0
    assert t.misuses() == []
    recorded(trace)


def test_b6_a_function_that_ends_without_a_return_leaves_its_frame() -> None:
    @framed(1)
    def nothing_said(wanted: bool) -> int | None:
        get_buffer(0, 32)
        if wanted:
            return 1

    before = state()
    for wanted in (True, False) * 5:
        nothing_said(wanted)
        assert state() == before


def test_b6_a_cancelled_task_leaves_what_it_entered() -> None:
    async def waits() -> None:
        with scope("outer"), frame(1), scope("inner"):
            get_buffer(0, 64)
            tensors()
            await asyncio.sleep(60)

    async def cancels() -> None:
        before = live_objects()
        for _ in range(5):
            task = asyncio.create_task(waits())
            await asyncio.sleep(0)
            assert live_objects() > before
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert live_objects() == before

    asyncio.run(cancels())
