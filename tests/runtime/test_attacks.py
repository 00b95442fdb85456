"""What a hostile or careless program may do with the runtime: it is told, and nothing breaks."""

import copy
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from runtime.things import Mock

from tlmem.runtime.errors import (
    InArena,
    UnbalancedScope,
    UseAfterFree,
    UseAfterMove,
    WrongDtype,
    WrongShape,
)
from tlmem.runtime.ownership.frame import arena_empty, frame, get_buffer
from tlmem.runtime.ownership.holders import acquire, move, release, release_safe
from tlmem.runtime.ownership.parameters import drop_parameter, register_parameter
from tlmem.runtime.ownership.pool import TensorPool
from tlmem.runtime.ownership.scope import (
    escape,
    promote,
    register,
    scope,
    scope_depth,
    scope_tensor_count,
    unregister,
)
from tlmem.runtime.ownership.struct import struct
from tlmem.runtime.tensors.factories import empty, ones, zeros
from tlmem.runtime.tensors.interop import from_numpy

# ---- free() of a registered thing that uses the runtime ----


class Freed(Mock):
    """A thing whose ``free()`` calls a function."""

    def __init__(self, function: Callable[[], object]) -> None:
        super().__init__()
        self.function = function

    def free(self) -> None:
        super().free()
        self.function()


def test_free_makes_tensors_in_the_scope_around_the_ending_one() -> None:
    made = []
    with scope("outer") as outer:
        with scope("inner") as inner:
            register(Freed(lambda: made.append(ones(3) + 1)))
        assert inner.stats().allocations == 1
        assert (scope_depth(), outer.count) == (1, 2)  # ones(3), and the sum
        assert made[0].tolist() == [2, 2, 2]
    assert not made[0].alive


@pytest.mark.parametrize("which", ["inner", "outer"])
def test_free_cannot_leave_the_ending_scope_or_one_around_it(which: str) -> None:
    with scope("outer") as outer:
        with pytest.raises(UnbalancedScope, match=f"scope '{which}'.*just ending"):  # noqa: PT012
            with scope("inner") as inner:
                ended = {"inner": inner, "outer": outer}[which]
                register(Freed(lambda: ended.__exit__(None, None, None)))
                kept = empty(1)
        assert (scope_depth(), kept.alive) == (1, False)
        later = empty(1)
    assert (scope_depth(), later.alive, outer.stats().frees) == (0, False, 1)


def test_scope_that_free_enters_and_forgets_ends_with_the_ending_one() -> None:
    inside = []

    def enter() -> None:
        scope("forgotten").__enter__()
        inside.append(empty(1))

    with scope("outer"):
        with scope("inner"):
            register(Freed(enter))
        assert scope_depth() == 1
    assert (scope_depth(), inside[0].alive) == (0, False)


def test_arena_of_the_outer_scope_is_not_given_away_when_free_takes_from_it() -> None:
    made = []

    def take() -> None:
        made.append(arena_empty(16))
        made[0].fill(7)

    with scope("outer"):
        with scope("inner"):
            arena_empty(16)
            register(Freed(take))
        arena_empty(16).fill(8)
        assert set(made[0].tolist()) == {7}


def test_free_may_use_a_frame_that_is_ending() -> None:
    sizes = []
    with frame(1):
        get_buffer(0, 64)
        register(Freed(lambda: sizes.append(get_buffer(0, 128).nbytes)))
    assert sizes == [128]


def test_exception_of_free_and_of_asking_for_escaped_are_both_raised() -> None:
    class Late(Mock):
        asked = 0

        @property
        def escaped(self) -> bool:
            self.asked += 1
            if self.asked > 1:
                raise ZeroDivisionError("asked")
            return False

        @escaped.setter
        def escaped(self, value: bool) -> None: ...

    with pytest.raises(ExceptionGroup) as caught, scope("s"):
        register(Late())
        register(Mock(error=KeyError("free")))
    assert sorted(type(each).__name__ for each in caught.value.exceptions) == [
        "KeyError",
        "ZeroDivisionError",
    ]


# ---- things that look like ours ----


def test_thing_with_every_attribute_is_a_thing_and_none_of_ours() -> None:
    thing = MagicMock(handle=3, escaped=False)
    with scope("s"):
        assert register(thing) is thing
        assert scope_tensor_count() == 1
    thing.free.assert_called_once_with()


def test_thing_with_the_handle_of_a_tensor_does_not_own_it() -> None:
    tensor = ones(3)
    before = tensor.holders()

    class Impostor(Mock):
        _holder = 0
        _moved = False

    with scope("s"):
        register(Impostor(tensor.handle))
        assert tensor.holders() == before
    assert tensor.tolist() == [1, 1, 1]
    with pytest.raises(TypeError, match="Impostor"):
        acquire(Impostor(tensor.handle))


# ---- names after a move ----

USES: dict[str, Callable[[Any], object]] = {
    "register": register,
    "unregister": unregister,
    "promote": promote,
    "escape": escape,
    "escape by method": lambda t: t.escape(),
    "acquire": acquire,
    "release": release,
    "move": move,
    "free": lambda t: t.free(),
    "parameter": lambda t: register_parameter("p", t),
    "struct": lambda t: struct([t]),
}


@pytest.mark.parametrize("kind", ["tensor", "struct"])
@pytest.mark.parametrize("name", USES)
def test_moved_name_is_of_no_use_whatever_is_tried(name: str, kind: str) -> None:
    with scope("s"):
        old = ones(3) if kind == "tensor" else struct([ones(3)])
        new = move(old)
        register(new)
        before = new.holders()
        with pytest.raises(UseAfterMove, match="moved at .*test_attacks.py:"):
            USES[name](old)
        assert (new.holders(), old._holder, new.alive) == (before, 0, True)
        release_safe(old)
        assert new.holders() == before


def test_moved_tensor_is_not_taken_by_a_pool() -> None:
    old = ones(3)
    new = move(old)
    pool = TensorPool()
    with pytest.raises(UseAfterMove):
        pool.release(old)
    pool.release(new)
    assert len(pool) == 1


# ---- structs that hold themselves ----


def test_struct_cannot_be_written_into_itself_in_any_way() -> None:
    a = struct({"x": None}, name="A")
    b = struct({"y": a, "z": [zeros(1)]})
    for value in (a, b, [b], {"deep": [0, (1, b)]}):
        with pytest.raises(ValueError, match=r"A\{x\} into itself.*cycle"):
            a["x"] = value
        assert (a["x"], a.count, b.count) == (None, 2, 1)
    a["x"] = zeros(2)
    b["z"] = a
    assert a.count == 3


def test_struct_that_was_freed_holds_nothing_and_makes_no_cycle() -> None:
    a = struct({"x": None})
    middle = struct({"y": a})
    outer = struct([middle])
    middle.free()
    a["x"] = outer
    assert (a.count, outer.count) == (1, 2)


def test_cycle_of_python_objects_through_a_struct_is_collected() -> None:
    s = struct({"a": ones(3)})
    inside = s["a"]
    ring: list[Any] = [s]
    ring.append(ring)
    handle = weakref.ref(s)
    del s, ring
    gc.collect()
    assert handle() is None
    assert inside.holders() == [f"handle #{inside._holder & 0xFFFFFFFF}"]


def test_chain_of_structs_longer_than_any_stack_is_freed() -> None:
    value: Any = ones(1)
    for _ in range(20_000):
        value = struct([value])
    assert value.alive


# ---- copies and pickles ----


def test_copies_and_pickles_are_values_and_shared_ones_stay_shared() -> None:
    t = ones((2, 2))[0]
    for twin in (copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        assert (twin.tolist(), twin.is_view) == ([1, 1], False)
    one, other = copy.deepcopy([t, t])
    assert one is other
    for each in (struct([1]), struct({"a": t})):
        for function in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot copy or pickle"):
                function(each)


# ---- buffers of slots in places for tensors ----


def test_buffer_of_a_slot_is_held_but_not_owned_by_others() -> None:
    with frame(1):
        buffer = get_buffer(0, 64)
        with pytest.raises(InArena, match=r"cannot move buffer of slot 0, 64 bytes.*copy"):
            move(buffer)
        with pytest.raises(TypeError, match="cannot release SlotBuffer to a pool"):
            TensorPool().release(buffer)
        model = struct({"a": buffer})
        register_parameter("slot", buffer)
        assert buffer.alive
    assert not buffer.alive
    for use in (lambda: struct([buffer]), lambda: register_parameter("p", buffer)):
        with pytest.raises(UseAfterFree, match="buffer of slot 0"):
            use()
    with pytest.raises(UseAfterFree):
        drop_parameter("slot")
    assert not model.alive  # it belonged to the frame


def test_dtype_in_the_other_byte_order_is_said_to_be_that() -> None:
    other = np.dtype(np.float32).newbyteorder()
    with pytest.raises(WrongDtype, match="float32 in the byte order '[<>]'"):
        from_numpy(np.zeros(2, other))
    with pytest.raises(WrongShape, match="it has no axes"):
        ones(()).sum(0)
