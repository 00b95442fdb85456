"""Every error says which object it is about, where that was allocated, and what to do next."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tlmem.runtime import errors as e
from tlmem.runtime.device import limit_device
from tlmem.runtime.ownership.frame import arena_empty, frame, function_exit, get_buffer
from tlmem.runtime.ownership.holders import acquire, move, release
from tlmem.runtime.ownership.parameters import parameter, register_parameter
from tlmem.runtime.ownership.pool import TensorPool
from tlmem.runtime.ownership.scope import escape, promote, register, scope, scope_stats, unregister
from tlmem.runtime.ownership.struct import struct
from tlmem.runtime.ownership.tensor_scope import TensorScope
from tlmem.runtime.tensors.elementwise import add
from tlmem.runtime.tensors.factories import arange, empty, full, ones, randn, tensor, zeros
from tlmem.runtime.tensors.interop import from_numpy


def line() -> int:
    """The line of this file that calls."""
    return sys._getframe(1).f_lineno


def place(at: int) -> str:
    return f"{__file__}:{at}"


@contextmanager
def told(kind: type[Exception], *parts: str) -> Iterator[Any]:
    """The block raises exactly this, and its message has all parts and no part twice in a row."""
    with pytest.raises(kind) as caught:
        yield caught
    message = str(caught.value)
    assert type(caught.value) is kind
    for part in parts:
        assert part in message, f"{part!r} is not in: {message}"
    assert not re.search(r"\b(\w+ \w+ \w+) \1\b", message), message
    assert not re.search(r"\bNone\b|<object|0x[0-9a-f]{6}|  ", message), message


def object_of(thing: Any, allocated: int) -> str:
    """How a message names a tensor of shape [2,3]."""
    return f"tensor float32[2,3] (object {thing.handle}, allocated at {place(allocated)})"


# ---- after the end ----

USES: dict[str, Callable[[Any], object]] = {
    "add": lambda t: t + 1,
    "out": lambda t: add(ones((2, 3)), 1, out=t),
    "as operand": lambda t: ones((2, 3)) * t,
    "in place": lambda t: t.__iadd__(1),
    "sum": lambda t: t.sum(),
    "matmul": lambda t: t @ ones((3, 2)),
    "index": lambda t: t[0],
    "write": lambda t: t.__setitem__(0, 1),
    "as index": lambda t: ones(3)[t],
    "reshape": lambda t: t.reshape(6),
    "copy": lambda t: t.copy(),
    "to": lambda t: t.to("cpu"),
    "fill": lambda t: t.fill(0),
    "item": lambda t: t.item(),
    "tolist": lambda t: t.tolist(),
    "numpy": lambda t: t.numpy(),
    "asarray": lambda t: np.asarray(t),
    "tensor": lambda t: tensor(t),
    "escape by method": lambda t: t.escape(),
    "acquire": lambda t: acquire(t),
    "release": lambda t: release(t),
    "move": lambda t: move(t),
    "unregister": lambda t: unregister(t),
    "promote": lambda t: promote(t),
    "pool": lambda t: TensorPool().release(t),
    "struct": lambda t: struct([t]),
    "parameter": lambda t: register_parameter("p", t),
}


@pytest.mark.parametrize("name", USES)
def test_use_of_what_a_scope_freed_names_it_its_places_the_scope_and_the_remedy(name: str) -> None:
    with scope("epoch") as s:
        t, allocated = ones((2, 3)), line()
        end = line()
    # A block is left at its last line, or, as Python counts, at its first one.
    with told(e.UseAfterFree, object_of(t, allocated), f"scope 'epoch' (#{s.id})", "escape") as c:
        USES[name](t)
    left = {place(number) for number in range(allocated - 1, end + 1)}
    assert any(f"left at {each}" in str(c.value) for each in left), str(c.value)
    assert f"used at {__file__}:" in str(c.value)
    assert (c.value.object, c.value.allocated) == (t.handle, place(allocated))
    assert c.value.freed.startswith("at the exit of scope 'epoch'") and c.value.advice


def test_second_free_and_use_after_free_by_hand_say_where_it_was_freed() -> None:
    t, allocated = ones((2, 3)), line()
    t.free()
    freed = f"by free() at {place(line() - 1)}"
    with told(e.DoubleFree, object_of(t, allocated), freed, "free it once"):
        t.free()
    with told(e.UseAfterFree, object_of(t, allocated), freed, "before it is freed", "copy()"):
        t + 1
    assert repr(t) == f"<Tensor float32[2,3] cpu, freed {freed}>"


def test_struct_freed_twice_says_where() -> None:
    s, allocated = struct({"a": ones(1)}, name="Layer"), line()
    s.free()
    freed = f"by free() at {place(line() - 1)}"
    about = f"struct Layer{{a}} (object {s.handle}, allocated at {place(allocated)})"
    with told(e.DoubleFree, about, freed, "free it once"):
        s.free()
    with told(e.UseAfterFree, about, freed):
        _ = s["a"]


def test_view_of_a_freed_tensor_names_the_tensor() -> None:
    base, allocated = ones((2, 3)), line()
    view = base[0]
    base.free()
    with told(e.UseAfterFree, "add a view of", object_of(base, allocated), "by free()"):
        view + 1


def test_use_after_move_says_where_it_was_moved_and_what_to_use() -> None:
    t, allocated = ones((2, 3)), line()
    twin, moved = move(t), line()
    with told(e.UseAfterMove, object_of(t, allocated), f"moved at {place(moved)}", "what move ret"):
        t + 1
    assert twin.tolist() == [[1] * 3] * 2


def test_slot_after_its_frame_names_slot_and_frame() -> None:
    with frame(1, name="forward") as f:
        buffer, allocated = get_buffer(0, 64), line()
    about = f"buffer of slot 0, 64 bytes (object {buffer.handle}, allocated at {place(allocated)})"
    with told(e.UseAfterFree, about):
        buffer.tensor((4,))
    assert f"#{f.id}" in core_text(buffer)


def core_text(buffer: Any) -> str:
    try:
        buffer.tensor((4,))
    except e.UseAfterFree as error:
        return str(error)
    return ""


# ---- holders ----


def test_release_by_who_does_not_hold_names_who_holds_not() -> None:
    t, allocated = ones((2, 3)), line()
    with told(e.NotAHolder, object_of(t, allocated), "cache is not one of its holders", "once"):
        release(t)
    acquire(t, "model")
    release(t, "model")
    with told(e.NotAHolder, object_of(t, allocated), "model is not one of its holders"):
        release(t, "model")
    assert t.count == 1


def test_free_of_what_is_lent_names_the_export() -> None:
    t, allocated = ones((2, 3)), line()
    array = t[0].numpy()
    with told(e.StillHeld, object_of(t, allocated), "lent out as export #", "drop the array"):
        t.free()
    assert array.sum() == 3


def test_what_others_hold_cannot_be_pooled_and_they_are_named() -> None:
    pool = TensorPool()
    t, allocated = ones((2, 3)), line()
    acquire(t, "model")
    with told(e.StillHeld, object_of(t, allocated), "held by handle #", "model", "let the other"):
        pool.release(t)
    release(t, "model")
    pool.release(t)
    with told(e.AlreadyPooled, object_of(t, allocated), "once"):
        pool.release(t)


def test_view_cannot_be_pooled() -> None:
    t = ones((4, 3))
    view, allocated = t[:2], line()
    with told(TypeError, object_of(view, allocated), "it is a view", "release its base"):
        TensorPool().release(view)


# ---- scopes and frames ----


def test_outside_any_scope_is_said_in_words() -> None:
    t, allocated = ones((2, 3)), line()
    with told(e.NotInScope, object_of(t, allocated), "not currently in a scope", "tlmem.scope("):
        escape(t)
    with told(e.NotInScope, "tensor float32[4]", "not currently in a scope", "tlmem.scope("):
        arena_empty(4)
    with told(e.NotInScope, "not currently in a scope"):
        scope_stats()


def test_what_no_scope_has_cannot_leave_one() -> None:
    t, allocated = ones((2, 3)), line()
    for leave, word in ((unregister, "unregister"), (promote, "promote")):
        with told(e.NotRegistered, f"cannot {word} {object_of(t, allocated)}", "register it first"):
            leave(t)


def test_scope_that_was_named_but_is_gone() -> None:
    with scope("gone") as s:
        pass
    for where in (s, s.id):
        with told(e.NotInScope, "tensor float32[2]", "scope"):
            empty(2, scope=where)
    closed = TensorScope("closed")
    closed.close()
    with told(e.NotInScope, "closed"):
        closed.sub_scope()
    with told(e.NotInScope, "tensor float32[2]"):
        empty(2, scope=closed)


def test_scopes_left_in_the_wrong_order_are_named() -> None:
    outer, inner = scope("outer").__enter__(), scope("inner").__enter__()
    with told(e.UnbalancedScope, f"scope 'outer' (#{outer.id})", "scope 'inner'", "reverse order"):
        outer.__exit__(None, None, None)
    with told(e.UnbalancedScope, f"scope 'inner' (#{inner.id})", "left already"):
        inner.__exit__(None, None, None)
    with told(e.UnbalancedScope, "scope 'never'", "not entered"):
        scope("never").__exit__(None, None, None)
    with scope("twice") as twice, told(e.UnbalancedScope, "'twice'", "entered already"):
        twice.__enter__()


def test_without_a_frame_and_with_a_bad_slot() -> None:
    with told(e.NoFrame, "slot 3", "no function frame", "tlmem.frame(slots)"):
        get_buffer(3, 8)
    with told(e.NoFrame, "leave a frame", "no function frame"):
        function_exit()
    with frame(2):
        for slot in (2, -1, 2**40):
            with told(e.BadSlot, f"slot {slot}", "ask for more slots"):
                get_buffer(slot, 8)
        for size in (-1, 2**64):
            with told(ValueError, "slot 0", f"{size} bytes"):
                get_buffer(0, size)
        with told(e.SizeOverflow, "slot 0"):
            get_buffer(0, 2**63)
    with told(ValueError, "-1"):
        frame(-1)


def test_memory_of_the_arena_cannot_be_handed_out() -> None:
    with scope("s"):
        t, allocated = arena_empty((2, 3)), line()
        ways = {
            "escape": lambda: escape(t),
            "unregister": lambda: unregister(t),
            "move": lambda: move(t),
            "lend": lambda: t.numpy(),
            "release to a pool": lambda: TensorPool().release(t),
        }
        for word, way in ways.items():
            with told(e.InArena, f"cannot {word} {object_of(t, allocated)}", "t.copy()"):
                way()
        assert t.alive and t.count == 1


# ---- shapes, dtypes, devices, sizes ----


def test_operands_that_do_not_fit() -> None:
    a, b = ones((2, 3)), ones((2, 2))
    with told(e.WrongShape, "[2,3]", "[2,2]", "broadcast"):
        a + b
    with told(e.WrongShape, "[2,3]", "[2,2]", "cannot be multiplied"):
        a @ b
    with told(e.WrongShape, "[2,3]", "no axis 2"):
        a.sum(2)
    with told(e.WrongShape, "tensor float32[2,3]", "6 elements", "[4]"):
        a.reshape(4)
    with told(e.WrongDtype, "bool", "astype"):
        -zeros(2, dtype="bool")
    with told(e.WrongDtype, "int16", "float32", "astype"):
        zeros(2, dtype="int16")
    with told(e.WrongDtype, "bool"):
        from_numpy(np.zeros(2, np.float16))


def test_destination_that_does_not_fit_is_named_and_untouched() -> None:
    a = ones((2, 3))
    out, allocated = full((2, 3), 7.0), line()
    whole = object_of(out, allocated)
    with told(e.WrongShape, whole, "[2]"):
        a.sum(1, out=out)
    with told(e.WrongDtype, whole, "float64"):
        add(ones((2, 3), "float64"), 1, out=out)
    with told(e.WrongDevice, whole, "different device (cpu, limit(cpu))", "t.to("):
        add(ones((2, 3), device=limit_device()), 1, out=out)
    with told(ValueError, "read-only", "copy"):
        add(a, 1, out=ones(3).broadcast_to(2, 3))
    with told(TypeError, "tlmem.Tensor", "ndarray"):
        add(a, 1, out=np.ones((2, 3)))
    assert out.tolist() == [[7] * 3] * 2


@pytest.mark.parametrize("make", [empty, zeros, ones, randn, lambda n: full(n, 1.0)])
def test_sizes_that_cannot_be_are_refused_before_anything_is_made(make: Any) -> None:
    for shape in (-1, (2, -3)):
        with told(e.WrongShape, "negative", "use 0"):
            make(shape)
    for shape in (2**62, (2**40, 2**40), (2**80, 0)):
        with told(e.SizeOverflow, "tensor float32[", "smaller"):
            make(shape)
    for shape in (1.5, "3", (True,), [[2]], np.array([2])):
        with told(TypeError, "a shape consists of integers"):
            make(shape)
    with told(e.WrongShape, "65", "axes"):
        make((1,) * 65)


def test_more_axes_than_numpy_has_are_refused_by_whatever_would_make_them() -> None:
    t, allocated = ones((1,) * 64), line()
    about = f"allocated at {place(allocated)}"
    assert t.reshape(1).tolist() == [1]
    for way in (lambda: t.unsqueeze(0), lambda: t.reshape((1,) * 65)):
        with told(e.WrongShape, "64 axes", about):
            way()


def test_devices_and_scopes_that_cannot_be() -> None:
    for device in ("gpu", -1, 2**40, 0, 255, True, 1.5):
        with told(e.NoSuchDevice, repr(device), "tlmem.devices()"):
            zeros(2, device=device)
    for where in (-1, 0, True, "s", 1.5, 2**64 - 1, 2**70):
        with told(TypeError, repr(where), "a scope"):
            zeros(2, scope=where)


def test_numbers_that_do_not_fit() -> None:
    with told(e.SizeOverflow, "int64"):
        full(2, 2**70)
    with told(e.SizeOverflow, "float64"):
        full(2, 2**2000, "float64")
    with told(e.SizeOverflow, "nan"):
        arange(float("nan"))
    with told(e.SizeOverflow, "int64"):
        arange(0, 10, 2**70)
    with told(ValueError, "step"):
        arange(0, 5, 0)


def test_names_that_cannot_be() -> None:
    for make in (TensorScope, lambda name: scope(name).__enter__()):
        with told(TypeError, "a name is a text", "3"):
            make(3)
    with scope("\ud800") as odd:  # no UTF-8 has it
        assert odd.stats().label == "\\ud800"
    t = ones(1)
    for holder in ("", 3, None):
        with pytest.raises(TypeError, match="a holder is a text"):
            acquire(t, holder)  # type: ignore[arg-type]
    with told(KeyError, "unknown", "registered are none"):
        parameter("unknown")
    with scope("s"), told(TypeError, "cannot register object", "handle, escaped, mark_escaped"):
        register(object())
