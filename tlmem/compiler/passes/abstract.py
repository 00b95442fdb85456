"""What a pass knows of a value before the function runs: abstract tensors, plain values, unknowns.

Covers: the kinds of abstract values, what two of them have in common, the abstract value of a real
one. Does not cover: what an operation makes of them (``shape_rules``), walking a function
(``shapes``).

An abstract value is one of: a ``TensorType``; a ``PlainType``, a Python value of which only the
class is known; a Python constant, known exactly; a tuple of abstract values; a ``StructType``; or
``UNKNOWN``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final

import numpy as np

from tlmem.runtime.dtypes import ITEM_BYTES
from tlmem.runtime.tensors.storage import Shape, Storage, shape_text

CONSTANTS = (bool, int, float, str, type(None), slice, type(...), range)
"""Classes whose values are known exactly."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor as far as it is known; what is not known is None.

    Attributes:
        shape: lengths of its axes.
        dtype: name of its dtype.
        device: number of its device.
        grad: whether it needs a gradient. None: it may, and is treated as if it did.
        contiguous: whether its elements are known to lie row by row without gaps.
    """

    shape: Shape | None = None
    dtype: str | None = None
    device: int | None = None
    grad: bool | None = None
    contiguous: bool = False

    @property
    def nbytes(self) -> int | None:
        """Bytes of its elements, where shape and dtype are known."""
        if self.shape is None or self.dtype is None:
            return None
        return prod(self.shape) * ITEM_BYTES[self.dtype]

    def __str__(self) -> str:
        """``float32[4,8] grad``; ``?`` for what is not known."""
        lengths = "[?]" if self.shape is None else shape_text(self.shape)
        grad = {True: " grad", None: " grad?", False: ""}[self.grad]
        return f"{self.dtype or '?'}{lengths}{grad}"


@dataclass(frozen=True, slots=True)
class PlainType:
    """A Python value that is not a tensor and of which only the class is known."""

    kind: type

    def __str__(self) -> str:
        return self.kind.__name__


@dataclass(frozen=True, slots=True)
class StructType:
    """A container whose fields are known: ``(name, value)`` in their order."""

    name: str
    fields: tuple[tuple[str, Any], ...]

    def field(self, name: str) -> Any:
        """The value of a field; ``UNKNOWN`` when there is none of this name."""
        return dict(self.fields).get(name, UNKNOWN)

    def with_field(self, name: str, value: Any) -> StructType:
        """The same container with one field replaced."""
        return replace(self, fields=tuple((n, value if n == name else v) for n, v in self.fields))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{n}: {text(v)}' for n, v in self.fields)})"


class _Unknown:
    """The class of ``UNKNOWN``."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()
"""A value of which nothing is known, not even whether it is a tensor."""


def joined(one: Any, other: Any) -> Any:
    """What is known of a value that is one of two, where two ways through a function meet.

    A value only ever becomes less known, in few steps, so a loop over a function comes to an end.
    """
    if one is other or same(one, other):
        return one
    if isinstance(one, TensorType) and isinstance(other, TensorType):
        agreed = {
            name: getattr(one, name) if getattr(one, name) == getattr(other, name) else None
            for name in ("shape", "dtype", "device", "grad")
        }
        return TensorType(**agreed, contiguous=one.contiguous and other.contiguous)
    if isinstance(one, StructType) and isinstance(other, StructType):
        if one.name == other.name and [n for n, _ in one.fields] == [n for n, _ in other.fields]:
            pairs = zip(one.fields, other.fields, strict=True)
            return StructType(one.name, tuple((n, joined(v, w)) for (n, v), (_, w) in pairs))
        return UNKNOWN
    if isinstance(one, tuple) and isinstance(other, tuple):
        if len(one) == len(other):
            return tuple(joined(a, b) for a, b in zip(one, other, strict=True))
        return UNKNOWN
    kind = kind_of(one)
    return PlainType(kind) if kind is not None and kind is kind_of(other) else UNKNOWN


def same(one: Any, other: Any) -> bool:
    """Whether two abstract values say the same: 1, 1.0 and True are three values, nan is one."""
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, StructType):
        names = [n for n, _ in one.fields] == [n for n, _ in other.fields]
        return one.name == other.name and names and same(values_of(one), values_of(other))
    if isinstance(one, float):
        return repr(one) == repr(other)  # nan is nan, and -0.0 is not 0.0
    return bool(one == other)


def values_of(struct: StructType) -> tuple[Any, ...]:
    """The values of the fields."""
    return tuple(value for _, value in struct.fields)


def kind_of(value: Any) -> type | None:
    """The class of a plain value; None when it is none, or not known."""
    if isinstance(value, PlainType):
        return value.kind
    return type(value) if isinstance(value, CONSTANTS) else None


def is_known(value: Any) -> bool:
    """Whether it is a Python constant, or a tuple of them."""
    return all(map(is_known, value)) if isinstance(value, tuple) else isinstance(value, CONSTANTS)


def text(value: Any) -> str:
    """An abstract value as listings show it."""
    if isinstance(value, tuple):
        return f"({', '.join(map(text, value))})"
    if isinstance(value, TensorType | PlainType | StructType):
        return str(value)
    return "?" if value is UNKNOWN else repr(value)


def abstract(value: Any) -> Any:
    """The abstract value of a real one, as an argument of a call is known to its signature."""
    if isinstance(value, Storage):
        return TensorType(
            value.shape,
            value.dtype,
            value._device,
            bool(value.requires_grad),  # type: ignore[attr-defined]
            is_contiguous(value),
        )
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return abstract(value.item())
    if isinstance(value, CONSTANTS):
        return value
    return tuple(map(abstract, value)) if type(value) is tuple else UNKNOWN


def is_contiguous(tensor: Any) -> bool:
    """Whether the elements of a tensor lie row by row; an own memory always does."""
    if not tensor.is_view:
        return True
    step = tensor.itemsize
    for length, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if length != 1 and stride != step:
            return not tensor.size
        step *= length
    return True
