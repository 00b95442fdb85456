"""What a tensor is in memory: its object, who holds that, and the view NumPy computes on.

Covers: making, checking, freeing, escaping and naming a tensor; destinations of operations.
Does not cover: what can be computed (``elementwise``, ``reductions``, ...), factories, views by
index (``views``), lending memory out (``interop``).

Who owns what: inside a scope the scope holds the object and the Python object is only its name;
outside any scope the Python object is the holder ``HANDLE | number`` and gives its count back when
it dies. NumPy sees the payload through an array that is kept beside the handle, owns nothing, and
is used only after the object was found alive.
"""

from __future__ import annotations

import threading
from math import prod
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tlmem.runtime import contexts, core
from tlmem.runtime.core import ffi, here, lib
from tlmem.runtime.dtypes import ITEM_BYTES, NUMPY
from tlmem.runtime.errors import DoubleFree, StillHeld

if TYPE_CHECKING:
    from tlmem.runtime.tensors.tensor import Tensor

Shape = tuple[int, ...]

_threads: dict[Any, Any] = vars(threading)["_active"]
"""The threads that Python knows; a running program never replaces this dict."""


COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
VERBS = ("add", "subtract", "multiply", "divide", "copy", "reshape", "transpose", "squeeze")
"""Names of NumPy's functions with which an error can say what could not be done."""
LEARNING = ("relu", "sigmoid", "softmax", "log_softmax", "gelu", "layer_norm", "cross_entropy")
"""Names of functions that NumPy has not."""


class Storage(core.Operand):
    """The part of a tensor that owns and is owned; ``Tensor`` is built on it."""

    __slots__ = ()

    # ---- what it is ----

    @property
    def device(self) -> str:
        """Name of the device its memory is from."""
        return core.device_name(self._device)

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return ITEM_BYTES[self.dtype]

    @property
    def nbytes(self) -> int:
        """Bytes of all its elements, whether they are its own or its base's."""
        return self.size * ITEM_BYTES[self.dtype]

    @property
    def strides(self) -> Shape:
        """Bytes from one element to the next along each axis."""
        if self._array is not None:
            return self._array.strides
        laid = self._layout()
        if laid:
            return laid[1]
        steps = [ITEM_BYTES[self.dtype]]
        for length in self.shape[:0:-1]:
            steps.append(steps[-1] * length)
        return tuple(reversed(steps)) if self.shape else ()

    @property
    def is_view(self) -> bool:
        """Whether it looks into the memory of another tensor, which it holds."""
        return self._base_handle != 0

    @property
    def base(self) -> Tensor | None:
        """The tensor a view looks into; None when it is no view, or nobody names that one."""
        return self._base

    # ---- its life ----

    @property
    def alive(self) -> bool:
        """Whether its memory may be used. Never an error, and no event."""
        return not self._moved and all(
            lib.tlm_object_describe(handle, info) == 0 and info.alive
            for info in (ffi.new("tlm_object_info *"),)
            for handle in (self.handle, self._base_handle or self.handle)
        )

    @property
    def count(self) -> int:
        """How many counts its holders have together; 0 when it is freed."""
        info = ffi.new("tlm_object_info *")
        known = lib.tlm_object_describe(self.handle, info) == 0
        return int(info.count) if known and info.alive else 0

    def holders(self) -> list[str]:
        """Who holds it, one text for each count, such as ``scope 'epoch' #3``."""
        return [core.holder_text(holder) for holder in core.holders_of(self.handle)]

    def escape(self) -> Tensor:
        """Takes it out of its scope: it belongs to this handle then, and lives on.

        Outside any scope, and for a tensor that its handle owns already, nothing happens.

        Raises:
            UseAfterFree: it is freed.
            InArena: its memory ends with its scope.
        Source: docs/seed-map.md, S39.
        """
        self._require("escape")
        contexts.settle()
        if self._holder == 0 and lib.tlm_scope_current() != 0:
            core.check(core.escape_to_handle(self), "escape", self)
            self.mark_escaped()
        return self  # type: ignore[return-value]

    def mark_escaped(self) -> None:
        """Says that it was taken out of its scope; ``escape`` does both."""
        self.escaped = True

    markEscaped = mark_escaped

    def free(self) -> None:
        """Gives its memory back now, whoever holds it: every later use raises.

        Raises:
            DoubleFree: it was freed already.
            StillHeld: it is lent to NumPy, DLPack or a buffer, which would be left dangling.
        """
        if self._moved:
            self._refuse(lib.TLM_FREED, "free")
        status = lib.tlm_free_unless(self.handle, core.EXPORT)
        if status == lib.TLM_FREED:
            raise freed_before(self)
        if status == lib.TLM_STILL_HELD:
            lent = ", ".join(map(core.holder_text, exports_of(self.handle))) or "an array"
            raise StillHeld(
                f"cannot free {core.subject_text(self)}: its memory is lent out as {lent}; drop "
                "the array or memoryview first, or drop the tensor and let the last holder free it",
                object=self.handle,
                allocated=self._allocated_at(),
                advice="drop the array or memoryview first",
            )
        core.check(status, "free", self)
        self._holder = 0
        self._ended = here()

    def _require(self, doing: str) -> None:
        """Raises when it may not be used."""
        status = self._check()
        if status:
            self._refuse(status, doing)

    def _refuse(self, status: int, doing: str) -> NoReturn:
        if doing in COMPARISONS:
            doing = "compare"
        elif (hasattr(np, doing) or doing in LEARNING) and doing not in VERBS:
            doing = f"compute {doing} of"
        base = self._base
        if base is not None and not base.alive and self.count:
            core.raise_for(status, f"{doing} a view of", base)
        core.raise_for(status, doing, self)

    # ---- the array NumPy computes on ----

    def _data(self, doing: str = "use") -> Any:
        """The array over its payload, after it was found alive. Never to be kept or returned."""
        if len(_threads) > 1:
            return self._pinned_data(doing)
        status = self._check()
        if status:
            self._refuse(status, doing)
        array = self._array
        if array is None:
            memory = self._memory(self._span, self._readonly)
            laid = self._layout() if self.size else ()  # NumPy looks at steps of nothing, too
            array = self._array = np.ndarray(self.shape, NUMPY[self.dtype], memory, *laid)
        return array

    def _pinned_data(self, doing: str) -> Any:
        """The same while other threads run: they may free the tensor while NumPy works on it.

        NumPy lets go of the GIL for large arrays. The memory stays until this array dies.
        """
        self._require(doing)  # a pin of what is freed would be a second misuse
        memory = self._pinned()
        self._require(doing)
        array = self._array
        if array is None:
            laid = self._layout() if self.size else ()
            made = np.ndarray(self.shape, NUMPY[self.dtype], memory, *laid)
            made.setflags(write=not self._readonly)
            return made
        if array.flags.carray and self.size and not self._base_handle:
            return np.ndarray(self.shape, NUMPY[self.dtype], memory)
        offset = array.__array_interface__["data"][0] - self._address() if self.size else 0
        made = np.ndarray(self.shape, array.dtype, memory, offset, array.strides)
        made.setflags(write=array.flags.writeable)
        return made

    # ---- what errors say of it ----

    def _name(self) -> str:
        return f"tensor {self.dtype}{shape_text(self.shape)}"

    def _allocated_at(self) -> str:
        return core.place_text(self._made)

    def _freed_by(self) -> str:
        known = core.ended_by_hand(self) or core.freed_by(self.handle)
        if not known and self._scope and not self.escaped and not self.alive:
            known = f"at the exit of {core.scope_text(self._scope)}"
        return known


def shape_text(shape: Shape) -> str:
    """``[2,3]``."""
    return f"[{','.join(map(str, shape))}]"


def freed_before(tensor: Storage) -> DoubleFree:
    """The error of a second free."""
    freed = tensor._freed_by()
    return DoubleFree(
        f"cannot free {core.subject_text(tensor)} again: it was freed {freed or 'before'}; free it "
        "once, or leave it to its scope",
        object=tensor.handle,
        allocated=tensor._allocated_at(),
        freed=freed,
        advice="free it once, or leave it to its scope",
    )


def moved(tensor: Storage) -> Tensor:
    """Another handle of the same object that has this one's count; this one may not be used."""
    twin: Any = object.__new__(type(tensor))
    twin._array, twin._base = tensor._array, tensor._base
    twin._take_over(tensor)
    tensor._ended = here()
    return twin


# ---- holders that matter here ----


def exports_of(handle: int) -> list[int]:
    """Holders that lent its memory out; memory of a view is lent by its base."""
    return [each for each in core.holders_of(handle) if each >> 56 == core.EXPORT]
