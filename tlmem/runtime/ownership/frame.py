"""Frames: a scope with numbered slots of memory that live as long as one call.

Covers: entering and leaving a frame by hand, as a block or around a function; the buffer of a slot;
tensors in the arena. Does not cover: how slots are chosen; a compiler does that.
See also: docs/reference/runtime.md, "Frames".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from threading import get_ident
from typing import Any, NoReturn, TypeVar
from weakref import WeakValueDictionary

from tlmem.runtime import contexts, core, dtypes
from tlmem.runtime.core import check, ffi, lib
from tlmem.runtime.errors import InArena, NoFrame
from tlmem.runtime.ownership.holders import describe, is_alive
from tlmem.runtime.ownership.scope import Scope, stats_of
from tlmem.runtime.tensors import making
from tlmem.runtime.tensors.factories import shape_of

Function = TypeVar("Function", bound=Callable[..., Any])

_MOST = 2**32 - 1


class SlotBuffer(core.Reference):
    """Memory of a slot of a frame. It is valid until the frame is left; its handle is a name only.

    Contents are undefined until written. It cannot be lent to NumPy or as a buffer: the frame
    frees it whatever looks at it. ``tensor`` gives a view that tlmem checks at each use.

    Attributes:
        handle: its object, as a number.
        slot: number of its slot.
        nbytes: bytes that it has room for.
    """

    __slots__ = ("_made", "nbytes", "slot")

    nbytes: int
    slot: int
    _made: core.Place | None

    @property
    def alive(self) -> bool:
        """Whether its frame has not been left. Never an error, and no event."""
        return is_alive(self.handle)

    def tensor(self, shape: Any, dtype: Any = dtypes.DEFAULT) -> Any:
        """A tensor over the buffer, without a copy; it belongs to the innermost scope.

        Args:
            shape: lengths, or one length.
        Raises:
            WrongShape: the buffer has less room.
            UseAfterFree: its frame was left.
        """
        check(lib.tlm_check(self.handle), "use", self)
        name = dtypes.dtype_name(dtype)
        return making.view_of_object(self.handle, self.nbytes, shape_of(shape), name, core.CPU)

    def _require(self, doing: str) -> None:
        """Raises when it may not be used so: its frame was left, or it is to be moved."""
        check(self._check(), doing, self)
        if doing == "move":
            raise InArena(
                f"cannot move {core.subject_text(self)}: its frame owns it; copy what is in it",
                object=self.handle,
                allocated=self._allocated_at(),
                advice="copy what is in it",
            )

    def __buffer__(self, flags: int, /) -> NoReturn:
        raise InArena(
            f"cannot lend {core.subject_text(self)}: its frame frees it whoever looks at it; use "
            "buffer.tensor(shape, dtype), or copy that",
            object=self.handle,
            allocated=self._allocated_at(),
            advice="use buffer.tensor(shape, dtype), or copy that",
        )

    def _name(self) -> str:
        return f"buffer of slot {self.slot}, {self.nbytes} bytes"

    def _allocated_at(self) -> str:
        return core.place_text(self._made)

    def _freed_by(self) -> str:
        return core.freed_by(self.handle)

    def __repr__(self) -> str:
        return f"<{self._name()}{'' if self.alive else ', freed'}>"


class Frame(Scope):
    """One frame as a context manager; made by ``frame``. It is a scope too: see ``Scope``."""

    _word = "frame"

    __slots__ = ("slots",)

    def __init__(self, slots: int, name: str | None = None) -> None:
        if isinstance(slots, bool) or not isinstance(slots, int):
            raise TypeError(f"the slots of a frame are counted, not {slots!r}")
        if not 0 <= slots <= _MOST:
            raise ValueError(f"a frame has 0 to {_MOST} slots, not {slots}")
        super().__init__(name)
        self.slots = slots

    def buffer(self, slot: int, size: int) -> SlotBuffer:
        """The memory of a slot of the innermost frame; see ``get_buffer``."""
        return get_buffer(slot, size)

    @classmethod
    def _entered_already(cls, number: int) -> Frame:
        """The frame of this number, which the context in force has entered."""
        found = cls(0, stats_of(number).label)
        found.id, found._context, found._thread = number, contexts.in_force(), get_ident()
        return found

    def _begin(self, label: int, out: Any) -> int:
        return lib.tlm_frame_enter(label, self.slots, out)

    def _end(self, out: Any) -> int:
        return lib.tlm_frame_exit(self.id, out)


def frame(slots: int, name: str | None = None) -> Frame:
    """A frame to enter: ``with tlmem.frame(2) as f: ...``.

    Args:
        slots: how many slots it has, numbered from 0.
        name: its label in recordings and errors; by default the function that enters it.
    """
    return Frame(slots, _function_name() if name is None else name)


def framed(slots: int, name: str | None = None) -> Callable[[Function], Function]:
    """Decorates a function or method: each call has a frame of its own, recursion included.

    Raises:
        TypeError: the function is a generator; its frame would stay entered between two values.
    """

    def decorate(function: Function) -> Function:
        if isgeneratorfunction(function) or isasyncgenfunction(function):
            raise TypeError(
                f"cannot frame the generator {function.__qualname__}: its frame would stay entered "
                "while it waits; frame what it calls"
            )
        label = function.__qualname__ if name is None else name

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with Frame(slots, label):
                return function(*args, **kwargs)

        @wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            with Frame(slots, label):
                return await function(*args, **kwargs)

        return call_async if iscoroutinefunction(function) else call  # type: ignore[return-value]

    return decorate


def function_enter(slots: int, name: str | None = None) -> int:
    """Enters a frame that ``function_exit`` leaves; its number.

    ``frame`` and ``framed`` cannot be forgotten on the way out; prefer them.
    """
    return Frame(slots, _function_name() if name is None else name).__enter__().id


def function_exit() -> None:
    """Leaves the innermost frame: its scope, then the buffers of its slots, then replaced ones.

    Raises:
        NoFrame: no function frame is entered.
        UnbalancedScope: scopes inside it were still entered; they were left first.
    """
    contexts.settle()
    innermost = lib.tlm_frame_current()
    if not innermost:
        raise no_frame("leave a frame")
    Frame._entered_already(innermost).__exit__(None, None, None)


def get_buffer(slot: int, size: int) -> SlotBuffer:
    """The memory of a slot of the innermost frame.

    The first call allocates it, a later one with enough room gives the same. A larger one takes its
    place, contents not copied, and the old one stays valid until the frame is left.

    Args:
        slot: number of the slot, from 0.
        size: bytes.
    Raises:
        NoFrame: no function frame is entered.
        BadSlot: the frame has no such slot.
        DeviceOutOfMemory, SizeOverflow: there is no memory; the slot is as it was.
    """
    if not (isinstance(slot, int) and isinstance(size, int)):
        raise TypeError(f"slot and size are whole numbers, not {slot!r} and {size!r}")
    if size < 0 or size >= 1 << 64:
        raise ValueError(f"the buffer of slot {slot} cannot have {size} bytes")
    contexts.settle()
    found = ffi.new("tlm_object *")
    status = lib.tlm_frame_buffer(slot if 0 <= slot < _MOST else _MOST, size, found)
    if status == lib.TLM_NO_FRAME:
        raise no_frame(f"get the buffer of slot {slot}")
    check(status, "get the buffer of", f"slot {slot} ({size} bytes)")
    buffer = _buffers.get(found[0])
    if buffer is None:
        buffer = _buffers[found[0]] = object.__new__(SlotBuffer)
        buffer._name_object(found[0])
        buffer.slot, buffer.nbytes = slot, describe(found[0]).bytes
        buffer._made = core.here()
    return buffer


_buffers: WeakValueDictionary[int, SlotBuffer] = WeakValueDictionary()
"""Buffers that the program has a name of, by handle: the same memory is the same Python object."""


def arena_empty(shape: Any, dtype: Any = dtypes.DEFAULT) -> Any:
    """A tensor in the arena of the running thread or task; contents undefined.

    It belongs to the innermost scope and ends with it whatever else holds it; it cannot escape or
    be lent. When the arena is full its memory comes from the heap.

    Raises:
        NotInScope: not currently in a scope.
        DeviceOutOfMemory, SizeOverflow: there is no memory.
    """
    return making.arena(shape_of(shape), dtypes.dtype_name(dtype))


def no_frame(doing: str) -> NoFrame:
    """The error of what can only be done inside a frame."""
    advice = "enter one with tlmem.frame(slots), @tlmem.framed(slots) or function_enter(slots)"
    return NoFrame(f"cannot {doing}: no function frame is entered here; {advice}", advice=advice)


def _function_name() -> str:
    place = core.here()
    return place[0].co_qualname if place else ""
