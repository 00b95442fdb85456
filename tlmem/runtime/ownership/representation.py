"""Representations: how values of a type become tensors and come back, in a scope that is passed.

Covers: the two protocols, their registration by type, the functions that use it, and a
representation for types of one fixed shape. Does not cover: the scopes (``tensor_scope``).
See also: docs/reference/runtime.md, "Representations".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from tlmem.runtime import core, dtypes
from tlmem.runtime.core import lib
from tlmem.runtime.errors import NotInScope, WrongShape
from tlmem.runtime.tensors import making
from tlmem.runtime.tensors.storage import Shape, shape_text

Value = TypeVar("Value")


@runtime_checkable
class TensorRepresentation(Protocol[Value]):
    """How values of one type become tensors. It keeps no scope: each call is given one."""

    def to_tensor(self, value: Value, scope: Any) -> Any:
        """A tensor of the value that belongs to the scope."""

    def from_tensor(self, tensor: Any) -> Value | None:
        """The value of a tensor; None when its shape or dtype is another's."""

    def tensor_shape(self, value: Value) -> Shape:
        """Shape of the tensor that the value becomes."""


@runtime_checkable
class BatchableTensorRepresentation(TensorRepresentation[Value], Protocol[Value]):
    """The same for a type whose values all have one shape, so that many become one tensor."""

    @property
    def fixed_shape(self) -> Shape:
        """Shape of each value."""

    def to_batched_tensor(self, values: Sequence[Value], scope: Any) -> Any:
        """One tensor of all values, first axis the values, made with one copy."""

    def from_batched_tensor(self, tensor: Any) -> list[Value]:
        """The values of such a tensor."""


_registered: dict[type, Any] = {}


def register_representation(kind: type, representation: Any) -> None:
    """Says how values of a type, and of types derived from it, become tensors; the last one counts.

    Raises:
        TypeError: it lacks a method of ``TensorRepresentation``.
    """
    if not isinstance(representation, TensorRepresentation):
        needed = ("to_tensor", "from_tensor", "tensor_shape")
        missing = [name for name in needed if not hasattr(representation, name)]
        raise TypeError(
            f"cannot register {type(representation).__name__} for {kind.__name__}: it has no "
            f"{', '.join(missing)}"
        )
    _registered[kind] = representation


def representation_of(kind: type) -> Any:
    """The representation of a type, or of the nearest type that it is derived from.

    Raises:
        TypeError: there is none.
    """
    for base in kind.__mro__:
        if base in _registered:
            return _registered[base]
    raise TypeError(
        f"{kind.__name__} has no representation as a tensor; register one with "
        f"tlmem.register_representation({kind.__name__}, ...)"
    )


def to_tensor(value: Any, scope: Any) -> Any:
    """A tensor of a value; it belongs to the scope that is passed, never to another.

    Raises:
        TypeError: the type has no representation.
        NotInScope: the scope is closed.
    """
    return representation_of(type(value)).to_tensor(value, scope)


def from_tensor(kind: type[Value], tensor: Any) -> Value | None:
    """The value of a tensor; None when its shape or dtype is not that of such a value."""
    return representation_of(kind).from_tensor(tensor)


def tensor_shape(value: Any) -> Shape:
    """Shape of the tensor that a value becomes."""
    return tuple(representation_of(type(value)).tensor_shape(value))


def to_batched_tensor(values: Sequence[Any], scope: Any) -> Any:
    """One tensor of many values of one type, made with one copy, in the scope that is passed.

    Raises:
        TypeError: the values are of several types, or the type is not batchable.
        WrongShape: a value has not the fixed shape; nothing was allocated.
        ValueError: there are none.
    """
    if not len(values):
        raise ValueError("cannot batch no values: their type is not known; give one or more")
    representation = batchable_of(type(values[0]))
    fixed = tuple(representation.fixed_shape)
    for index, value in enumerate(values):
        if representation_of(type(value)) is not representation:
            raise TypeError(
                f"cannot batch {type(value).__name__} (value {index}) with "
                f"{type(values[0]).__name__}: they have different representations"
            )
        shape = tuple(representation.tensor_shape(value))
        if shape != fixed:
            raise WrongShape(
                f"cannot batch value {index}: its shape is {shape_text(shape)}, and the batch has "
                f"{shape_text(fixed)} for each; leave it out or pad it"
            )
    return representation.to_batched_tensor(values, scope)


def from_batched_tensor(kind: type[Value], tensor: Any) -> list[Value]:
    """The values of a tensor that ``to_batched_tensor`` made.

    Raises:
        TypeError: the type is not batchable.
        WrongShape: the tensor is not a batch of such values.
    """
    return batchable_of(kind).from_batched_tensor(tensor)


def batchable_of(kind: type) -> Any:
    """The representation of a type whose values have one shape.

    Raises:
        TypeError: its values may differ in shape, or it has no representation.
    """
    found = representation_of(kind)
    if not isinstance(found, BatchableTensorRepresentation):
        raise TypeError(
            f"{kind.__name__} is not batchable: its representation has no fixed_shape, "
            "to_batched_tensor and from_batched_tensor; convert values one by one"
        )
    return found


class FixedShape:
    """A batchable representation made of two functions, for a type whose values have one shape.

    Each tensor, of one value or of a batch, is filled in ordinary memory and copied to its device
    once; the copy is recorded.

    Args:
        shape: shape of each value.
        write: ``write(value, array)`` fills an array of that shape.
        read: ``read(array)`` makes a value of one; the array is a copy of its own.
        dtype: dtype of the tensors.
        shape_of: returns the shape of a value where values of another shape exist.
    """

    def __init__(
        self,
        shape: Sequence[int],
        write: Callable[[Any, np.ndarray], None],
        read: Callable[[np.ndarray], Any],
        dtype: Any = dtypes.DEFAULT,
        shape_of: Callable[[Any], Sequence[int]] | None = None,
    ) -> None:
        self.fixed_shape: Shape = tuple(shape)
        self.dtype = dtypes.dtype_name(dtype)
        self._write = write
        self._read = read
        self._shape_of = shape_of

    def tensor_shape(self, value: Any) -> Shape:
        """Shape of the value; the fixed one by default."""
        return tuple(self._shape_of(value)) if self._shape_of else self.fixed_shape

    def to_tensor(self, value: Any, scope: Any) -> Any:
        """A tensor of one value.

        Raises:
            WrongShape: the value has another shape.
        """
        shape = self.tensor_shape(value)
        if shape != self.fixed_shape:
            raise WrongShape(
                f"cannot represent {type(value).__name__} of shape {shape_text(shape)}; values "
                f"have shape {shape_text(self.fixed_shape)}"
            )
        filled = np.empty(self.fixed_shape, dtypes.NUMPY[self.dtype])
        self._write(value, filled)
        return copied(filled, self.dtype, scope)

    def from_tensor(self, tensor: Any) -> Any:
        """The value of a tensor, None when it does not fit."""
        if tensor.shape != self.fixed_shape or tensor.dtype != self.dtype:
            return None
        return self._read(tensor._data("read").copy())

    def to_batched_tensor(self, values: Sequence[Any], scope: Any) -> Any:
        """One tensor of all values."""
        filled = np.empty((len(values), *self.fixed_shape), dtypes.NUMPY[self.dtype])
        for index, value in enumerate(values):
            self._write(value, filled[index, ...])
        return copied(filled, self.dtype, scope)

    def from_batched_tensor(self, tensor: Any) -> list[Any]:
        """The values of a batch.

        Raises:
            WrongShape: it is not a batch of such values.
        """
        if tensor.shape[1:] != self.fixed_shape or not tensor.shape or tensor.dtype != self.dtype:
            raise WrongShape(
                f"{core.subject_text(tensor)} is not a batch of {self.dtype}"
                f"{shape_text(self.fixed_shape)}; its first axis would be the values"
            )
        data = tensor._data("read")
        return [self._read(data[index, ...].copy()) for index in range(len(data))]


def copied(filled: np.ndarray, dtype: str, scope: Any) -> Any:
    """A tensor in a scope, on its device, with the contents of an array: one copy, recorded.

    Raises:
        NotInScope: the scope is closed, or was not entered.
    """
    if not scope.id:
        raise NotInScope(f"{scope!r} was not entered yet; enter it with a with statement")
    device = core.device_number(getattr(scope, "device", "cpu"))
    tensor = making.make(filled.shape, dtype, device, scope.id)
    tensor._data("fill")[...] = filled
    lib.tlm_copy_record(core.NULL_OBJECT, tensor.handle, filled.nbytes)
    return tensor
