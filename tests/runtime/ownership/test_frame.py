"""Frames and arenas: S12 to S15, B5, B6."""

import asyncio

import numpy as np
import pytest
from runtime.trace import live_objects, statistics

from tlmem.runtime import core
from tlmem.runtime.core import ffi, lib
from tlmem.runtime.errors import (
    BadSlot,
    InArena,
    NoFrame,
    NotInScope,
    UnbalancedScope,
    UseAfterFree,
    WrongShape,
)
from tlmem.runtime.ownership.frame import (
    arena_empty,
    frame,
    framed,
    function_enter,
    function_exit,
    get_buffer,
)
from tlmem.runtime.ownership.holders import acquire, release
from tlmem.runtime.ownership.scope import escape, register, scope, scope_depth
from tlmem.runtime.tensors.factories import empty


def arena_statistics():
    found = ffi.new("tlm_arena_statistics *")
    lib.tlm_arena_stats(found)
    return found


# ---- S12: frames ----


def test_the_first_get_allocates_and_later_ones_give_the_same_buffer(trace) -> None:
    with trace() as t:
        with frame(2, "f"):
            first = get_buffer(0, 64)
            t.name(a=first)
            assert get_buffer(0, 64) is get_buffer(0, 10) is first
            t.name(b=get_buffer(1, 64))

    assert t.count("ALLOC") == t.count("FREE") == 2
    assert t.rows("FRAME_ENTER", "FRAME_EXIT", "SLOT_GET") == [
        ("FRAME_ENTER", "f", 2, 0),
        ("SLOT_GET", "a", "f", 0),
        ("SLOT_GET", "a", "f", 0),
        ("SLOT_GET", "a", "f", 0),
        ("SLOT_GET", "b", "f", 1),
        ("FRAME_EXIT", "f", 2, 0),
    ]


def test_exit_leaves_the_scope_first_then_slots_then_replaced_buffers(trace) -> None:
    with trace() as t:
        function_enter(2, "f")
        small, other = get_buffer(0, 64), get_buffer(1, 64)
        large = get_buffer(0, 256)
        t.name(tensor=empty(1), small=small, other=other, large=large)
        function_exit()

    ends = t.pairs("FREE", "SCOPE_EXIT", "FRAME_EXIT")
    assert ends[:2] == [("FREE", "tensor"), ("SCOPE_EXIT", "f")]
    assert {name for _, name in ends[2:4]} == {"large", "other"}
    assert ends[4:] == [("FREE", "small"), ("FRAME_EXIT", "f")]


def test_a_loop_of_calls_allocates_in_no_device_after_its_first(trace) -> None:
    @framed(2)
    def step() -> None:
        a = get_buffer(0, 4096).tensor((32, 32))
        b = get_buffer(1, 4096).tensor((32, 32))
        b[:] = a

    step()
    with trace() as t:
        for _ in range(50):
            step()

    assert t.count("DEVICE_ALLOC") == 0
    assert t.count("ALLOC") == t.count("FREE") == 4 * 50


def test_recursion_gives_each_call_slots_of_its_own() -> None:
    seen = []

    @framed(1)
    def down(depth: int) -> None:
        mine = get_buffer(0, 64)
        seen.append(mine.handle)
        if depth:
            down(depth - 1)
        assert get_buffer(0, 64).handle == mine.handle

    down(10)
    assert len(set(seen)) == 11


@framed(1)
def leave_normally() -> None:
    get_buffer(0, 64)


@framed(1)
def leave_early() -> int:
    get_buffer(0, 64)
    for step in range(3):
        if step == 1:
            continue
        if step == 2:
            return step
    return 0


@framed(1)
def leave_by_exception() -> None:
    get_buffer(0, 64)
    empty(1)
    raise KeyError


@pytest.mark.parametrize("call", [leave_normally, leave_early, leave_by_exception])
def test_however_a_frame_is_left_it_is_balanced(call) -> None:
    before, arena = live_objects(), arena_statistics().slot_bytes
    with scope("outer"):
        try:
            call()
        except KeyError:
            pass
        assert (scope_depth(), live_objects()) == (1, before)
        assert arena_statistics().slot_bytes == arena


def test_outside_a_frame_the_error_says_so(trace) -> None:
    with trace() as t:
        with pytest.raises(NoFrame, match="no function frame"):
            get_buffer(0, 64)
        with pytest.raises(NoFrame, match="no function frame"):
            function_exit()
        with scope("s"), pytest.raises(NoFrame, match="slot 3"):
            get_buffer(3, 64)

    assert [what for _, what in t.misuses()] == ["no frame", "no frame"]


@pytest.mark.parametrize("slot", [2, -1, 2**40])
def test_a_slot_that_the_frame_does_not_have_is_named(slot: int) -> None:
    with frame(2), pytest.raises(BadSlot, match=f"slot {slot} "):
        get_buffer(slot, 64)


def test_sizes_and_slots_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        frame(-1)
    with pytest.raises(TypeError, match="1.5"):
        frame(1.5)
    with frame(1):
        with pytest.raises(ValueError, match="-5 bytes"):
            get_buffer(0, -5)
        with pytest.raises(TypeError):
            get_buffer(0, 1.5)
        with pytest.raises(OverflowError, match="slot 0"):
            get_buffer(0, 2**62)
        assert get_buffer(0, 0).nbytes == 0


def test_scopes_left_inside_a_frame_are_left_with_it_and_told() -> None:
    function_enter(1, "f")
    scope("forgotten").__enter__()
    a = empty(1)
    with pytest.raises(UnbalancedScope, match="frame 'f'.*forgotten"):
        function_exit()

    assert (scope_depth(), a.alive) == (0, False)


def test_s12_a_frame_left_before_an_inner_one_leaves_that_first(trace) -> None:
    with trace() as t:
        with pytest.raises(UnbalancedScope, match="'outer'.*'inner'"):
            with frame(1, "outer"):
                t.name(a=get_buffer(0, 64))
                frame(1, "inner").__enter__()
                t.name(b=get_buffer(0, 64))

    assert [name for _, name in t.pairs("FREE")] == ["b", "a"]
    assert [what for _, what in t.misuses()] == ["unbalanced frame"]
    with pytest.raises(NoFrame):
        get_buffer(0, 64)


def test_a_frame_is_named_after_the_function_that_enters_it(trace) -> None:
    def caller() -> None:
        function_enter(0)
        function_exit()

    with trace() as t:
        caller()
        with frame(0):
            pass
        leave_normally()

    here = "test_a_frame_is_named_after_the_function_that_enters_it"
    assert [name for _, name in t.pairs("SCOPE_ENTER")] == [
        f"{here}.<locals>.caller",
        here,
        "leave_normally",
    ]


# ---- S13: methods ----


class Model:
    @framed(1)
    def forward(self) -> float:
        a = get_buffer(0, 16).tensor(4)
        a[:] = 2.0
        return a.sum().item()

    @classmethod
    @framed(1)
    def build(cls) -> int:
        return get_buffer(0, 16).nbytes

    @staticmethod
    @framed(1)
    def helper() -> int:
        return get_buffer(0, 16).nbytes


def test_methods_have_frames_exactly_like_functions() -> None:
    assert (Model().forward(), Model.build(), Model.helper(), scope_depth()) == (8.0, 16, 16, 0)


def test_s13_the_frame_of_a_method_says_of_which_class(trace) -> None:
    with trace() as t:
        Model().forward()
        Model.build()

    assert [name for _, name in t.pairs("SCOPE_ENTER")] == ["Model.forward", "Model.build"]


def test_s13_the_frame_of_an_asynchronous_method_lasts_until_it_returns() -> None:
    depths = []

    class Client:
        @framed(1)
        async def ask(self) -> int:
            mine = get_buffer(0, 16)
            await asyncio.sleep(0)
            depths.append(scope_depth())
            return get_buffer(0, 16).handle == mine.handle

    assert asyncio.run(Client().ask())
    assert (depths, scope_depth()) == ([1], 0)


def test_generators_cannot_be_framed() -> None:
    def values():
        yield 1

    async def more():
        yield 1

    for function in (values, more):
        with pytest.raises(TypeError, match="generator"):
            framed(1)(function)


# ---- S15: growth ----


def test_growth_keeps_the_old_buffer_readable_until_the_frames_exit(trace) -> None:
    """B5: growing a slot freed the buffer that the caller was still using."""
    with trace() as t:
        with frame(1, "f"):
            old = get_buffer(0, 16)
            a = old.tensor(4)
            a[:] = 7.0
            new = get_buffer(0, 64)
            t.name(old=old, new=new)
            assert new.handle != old.handle
            assert a.tolist() == [7.0] * 4
            assert get_buffer(0, 16).handle == new.handle  # capacity never shrinks

    assert t.rows("SLOT_GROW") == [("SLOT_GROW", "new", "f", 0)]
    assert not old.alive
    with pytest.raises(UseAfterFree, match="frame 'f'"):
        old.tensor(4)


def test_s15_every_buffer_of_a_slot_that_grew_often_ends_with_the_frame_and_not_before() -> None:
    before = live_objects()
    with frame(1):
        grown = [get_buffer(0, 64 * step) for step in range(1, 20)]
        assert all(each.alive for each in grown)
        assert len(live_objects() - before) == 19

    assert live_objects() == before


def test_a_slot_whose_buffer_went_with_an_inner_scope_is_empty_again(trace) -> None:
    with trace() as t:
        with frame(1, "f"):
            old = get_buffer(0, 16)
            with scope("inner"):
                register(old)
            assert not old.alive
            new = get_buffer(0, 8)
            t.name(new=new)
            assert new.alive and new.handle != old.handle

    assert t.rows("SLOT_GET")[1:] == [("SLOT_GET", "new", "f", 0)]
    assert t.rows("SLOT_GROW") == []


def test_a_view_of_a_buffer_ends_with_the_frame_and_says_so() -> None:
    with frame(1, "f"):
        a = get_buffer(0, 16).tensor(4)
    with pytest.raises(UseAfterFree, match="frame 'f'"):
        a.tolist()


def test_a_view_needs_room_in_the_buffer() -> None:
    with frame(1):
        buffer = get_buffer(0, 16)
        assert buffer.tensor((2, 2)).shape == (2, 2)
        with pytest.raises(WrongShape, match="20 bytes"):
            buffer.tensor(5)
        with pytest.raises(WrongShape, match="negative"):
            buffer.tensor((-1, 2))


@pytest.mark.parametrize("size", [64, 1 << 22])
def test_memory_of_a_slot_is_never_lent(size: int) -> None:
    with frame(1):
        buffer = get_buffer(0, size)  # in the arena, and beyond it
        with pytest.raises(InArena, match="slot 0"):
            memoryview(buffer)
        with pytest.raises(InArena):
            buffer.tensor(4).numpy()


def test_a_view_does_not_escape_and_one_that_is_held_is_caught_at_its_next_use(trace) -> None:
    with trace() as t:
        with frame(1, "f"):
            a = get_buffer(0, 16).tensor(4)
            with pytest.raises(InArena, match="copy it to memory of its own"):
                escape(a)
            acquire(a, "cache")
        with pytest.raises(UseAfterFree, match="cannot read tensor"):
            a.tolist()
        release(a, "cache")
        del a

    assert [what for _, what in t.misuses()] == [
        "outlives frame",
        "outlives frame",
        "use after free",
    ]


# ---- S14: the arena ----


def test_arena_tensors_are_aligned_and_end_with_their_scope() -> None:
    with scope("s"):
        for size in (1, 3, 17, 100):
            a = arena_empty(size)
            assert a._address() % 64 == 0
            a[:] = 1.0
            assert a.sum().item() == size
    assert not a.alive
    with pytest.raises(UseAfterFree, match="scope 's'"):
        a.tolist()


def test_the_arenas_offset_is_what_it_was_however_a_scope_is_left() -> None:
    before = arena_statistics().scope_bytes
    for way in ("return", "break", "exception"):
        try:
            for _ in range(2):
                with scope(way):
                    arena_empty(1000)
                    with scope("inner"):
                        arena_empty(10)
                    assert arena_statistics().scope_bytes > before
                    if way == "break":
                        break
                    if way == "exception":
                        raise KeyError
        except KeyError:
            pass
        assert arena_statistics().scope_bytes == before


def test_after_a_scope_the_same_arena_memory_is_used_again() -> None:
    with scope():
        first = arena_empty(100)._address()
    with scope():
        assert arena_empty(100)._address() == first


def test_s14_scopes_and_slots_that_use_the_arena_from_both_ends_never_meet() -> None:
    with frame(1):
        slots = get_buffer(0, 700_000).tensor(175_000)
        slots[:] = 1.0
        overflows = arena_statistics().overflows
        fits, too_large = arena_empty(50_000), arena_empty(100_000)
        now = arena_statistics()
        fits[:] = too_large[:] = 2.0

        assert now.overflows == overflows + 1
        assert now.capacity_bytes >= now.peak_bytes >= now.scope_bytes + now.slot_bytes > 900_000
        assert (slots.sum().item(), fits.sum().item()) == (175_000.0, 100_000.0)


def test_an_arena_that_is_full_takes_memory_from_the_heap() -> None:
    overflows = arena_statistics().overflows
    first = statistics(core.CPU)
    with scope("s"):
        a = arena_empty(1 << 20)
        a[:] = 3.0
        assert (a[0].item(), arena_statistics().overflows) == (3.0, overflows + 1)

    now = statistics(core.CPU)
    assert now.total_count - first.total_count == now.freed_count - first.freed_count


def test_arena_tensors_cannot_escape_be_lent_or_be_made_outside_a_scope() -> None:
    with scope("s"):
        a = arena_empty(4)
        with pytest.raises(InArena):
            escape(a)
        with pytest.raises(InArena):
            np.asarray(a)
        a[:] = 2.0
        copied = escape(a.copy())
    assert copied.tolist() == [2.0] * 4
    with pytest.raises(NotInScope, match="float32"):
        arena_empty(4)
