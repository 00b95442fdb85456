"""The same elements in another shape or order, and tensors put together.

A view where the memory allows it, as in NumPy; otherwise a copy, which is recorded as one.
Does not cover: parts of a tensor (``views``).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.runtime import core
from tlmem.runtime.core import lib
from tlmem.runtime.dtypes import promoted
from tlmem.runtime.errors import WrongShape
from tlmem.runtime.tensors.computing import broadcast, by_op, compute_apart
from tlmem.runtime.tensors.core_ops import apply, require_no_gradient, row
from tlmem.runtime.tensors.making import (
    MOST_AXES,
    destination,
    device_of,
    make,
    too_many_axes,
    view,
)
from tlmem.runtime.tensors.reductions import axes_of
from tlmem.runtime.tensors.rows import by_row, composed
from tlmem.runtime.tensors.storage import Shape, Storage, shape_text

if TYPE_CHECKING:
    from tlmem.runtime.tensors.tensor import Tensor


RESHAPE, TRANSPOSE, SWAPAXES, SQUEEZE, UNSQUEEZE = map(
    row, ("reshape", "transpose", "swapaxes", "squeeze", "unsqueeze")
)
BROADCAST_TO, CONCAT, STACK = map(row, ("broadcast_to", "concat", "stack"))
MOST_OP_AXES = 8


def lengths(shape: tuple[Any, ...]) -> Shape:
    """A shape that is given as several integers or as one sequence of them.

    Raises:
        TypeError: something in it is no integer.
    """
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    for each in given:
        if isinstance(each, bool) or not hasattr(each, "__index__"):
            raise TypeError(f"a shape consists of integers, not {each!r}")
    return tuple(each.__index__() for each in given)


@by_row
def reshape(tensor: Tensor, *shape: Any) -> Tensor:
    """The same elements row by row in another shape; one length may be -1, for what is left.

    A view when the elements lie so that it can be one, else a copy.

    Raises:
        WrongShape: it is a shape of another number of elements.
    """
    wanted = lengths(shape)
    made = viewed_by_op(RESHAPE, "reshape", tensor, wanted)
    if made is not NotImplemented:
        return made
    known = prod(length for length in wanted if length != -1)
    if wanted.count(-1) == 1 and known and tensor.size % known == 0:
        wanted = tuple(tensor.size // known if length == -1 else length for length in wanted)
    if min(wanted, default=0) < 0 or prod(wanted) != tensor.size:
        raise WrongShape(
            f"{core.subject_text(tensor)} has {tensor.size} elements and cannot have shape "
            f"{shape_text(wanted)}"
        )
    data = tensor._data("reshape")
    if len(wanted) > MOST_AXES:
        raise too_many_axes(tensor, len(wanted))
    if data.flags.c_contiguous:
        return view(tensor, data.reshape(wanted))
    return view_or_copy(tensor, data, wanted)


def viewed_by_op(number: int, name: str, tensor: Any, numbers: Shape) -> Any:
    """By an op that is given a count and so many numbers; NotImplemented where NumPy finds it."""
    if len(numbers) > MOST_OP_AXES:
        require_no_gradient(f"give {len(numbers)} axes to", tensor)
        return NotImplemented
    return by_op(number, name, None, (tensor,), len(numbers), numbers)


def view_or_copy(tensor: Any, data: Any, shape: Shape) -> Tensor:
    """A view when NumPy finds one, else a copy in memory of ours."""
    try:
        return view(tensor, np.reshape(data, shape, copy=False))
    except TypeError:  # NumPy 2.0 cannot be asked
        pass
    except ValueError:
        pass
    result = make(shape, tensor.dtype, tensor._device)
    np.copyto(result._data().reshape(data.shape), data)
    lib.tlm_copy_record(tensor.handle, result.handle, result.nbytes)
    return result


@by_row
def transpose(tensor: Tensor, *axes: Any) -> Tensor:
    """A view with its axes in another order, or reversed without one.

    Raises:
        WrongShape: the axes are not those of the tensor, each once.
    """
    if not axes and (made := apply(TRANSPOSE, 1, tensor, 0)) is not NotImplemented:
        return made
    if not axes or len(order := lengths(axes)) == len(tensor.shape):
        made = viewed_by_op(TRANSPOSE, "transpose", tensor, order if axes else ())
        if made is not NotImplemented:
            return made
    data = tensor._data("transpose")
    wanted = lengths(axes) if axes else tuple(range(tensor.ndim))[::-1]
    order = axes_of(tensor, wanted)
    if len(order) != tensor.ndim:
        raise WrongShape(f"axes {order} are not the {tensor.ndim} of {shape_text(tensor.shape)}")
    return view(tensor, data.transpose(order))


@composed
def permute(tensor: Tensor, *axes: Any) -> Tensor:
    """A view with its axes in another order: ``transpose`` that takes each of them."""
    wanted = lengths(axes)
    if tensor.shape and not wanted:
        raise WrongShape(f"axes () are not the {tensor.ndim} of {shape_text(tensor.shape)}")
    return transpose(tensor, wanted) if wanted else transpose(tensor)


@by_row
def swapaxes(tensor: Tensor, one: int, other: int) -> Tensor:
    """A view with two axes exchanged."""
    first, second = (axes_of(tensor, axis)[0] for axis in (one, other))
    made = by_op(SWAPAXES, "swapaxes", None, (tensor,), first, second)
    if made is not NotImplemented:
        return made
    return view(tensor, tensor._data("transpose").swapaxes(first, second))


@by_row
def squeeze(tensor: Tensor, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """A view without axes of length 1: all of them, or those that are named.

    Raises:
        WrongShape: a named one has another length.
    """
    data = tensor._data("squeeze")
    axes = axes_of(tensor, axis)
    if axis is None:
        axes = tuple(i for i in axes if tensor.shape[i] == 1)
    if any(tensor.shape[i] != 1 for i in axes):
        raise WrongShape(f"an axis of {axes} in {shape_text(tensor.shape)} has not length 1")
    mask = sum(1 << i for i in axes)
    made = by_op(SQUEEZE, "squeeze", None, (tensor,), mask) if mask < 256 else NotImplemented
    if made is not NotImplemented:
        return made
    return view(tensor, data.squeeze(axes))


@by_row
def unsqueeze(tensor: Tensor, axis: int) -> Tensor:
    """A view with one more axis of length 1, at this place.

    Raises:
        WrongShape: there is no such place.
    """
    if not -tensor.ndim - 1 <= axis <= tensor.ndim:
        raise WrongShape(f"there is no place {axis} for an axis in {shape_text(tensor.shape)}")
    made = by_op(UNSQUEEZE, "unsqueeze", None, (tensor,), axis)
    if made is not NotImplemented:
        return made
    data = tensor._data("reshape")
    if data.ndim == MOST_AXES:
        raise too_many_axes(tensor, data.ndim + 1)
    return view(tensor, np.expand_dims(data, axis))


@by_row
def broadcast_to(tensor: Tensor, *shape: Any) -> Tensor:
    """A read-only view in which axes of length 1 are repeated.

    Raises:
        WrongShape: it does not broadcast to this shape.
    """
    wanted = lengths(shape)
    if min(wanted, default=0) < 0 or broadcast(tensor.shape, wanted) != wanted:
        raise WrongShape(f"{shape_text(tensor.shape)} does not broadcast to {shape_text(wanted)}")
    made = viewed_by_op(BROADCAST_TO, "broadcast_to", tensor, wanted)
    if made is not NotImplemented:
        made._readonly = True
        return made
    return view(tensor, np.broadcast_to(tensor._data("broadcast"), wanted))


@by_row
def concat(tensors: Sequence[Tensor], axis: int = 0, out: Tensor | None = None) -> Tensor:
    """Tensors one after the other along an axis that they have.

    Raises:
        WrongShape: other lengths differ, or there is no such axis.
        ValueError: there are no tensors.
    """
    parts = sequence(tensors, "concat")
    (along,) = axes_of(parts[0], axis)
    first = parts[0].shape
    for each in parts:
        rest = zip(each.shape, first, strict=len(each.shape) != len(first))
        if len(each.shape) != len(first) or any(
            a != b for i, (a, b) in enumerate(rest) if i != along
        ):
            raise WrongShape(
                f"shapes {shape_text(first)} and {shape_text(each.shape)} cannot be put together "
                f"along axis {along}; all other lengths must be equal"
            )
    total = sum(each.shape[along] for each in parts)
    made = by_op(CONCAT, "concat", out, tuple(parts), along)
    if made is not NotImplemented:
        return made
    return joined(np.concatenate, parts, (*first[:along], total, *first[along + 1 :]), along, out)


@by_row
def stack(tensors: Sequence[Tensor], axis: int = 0, out: Tensor | None = None) -> Tensor:
    """Tensors of one shape along a new axis.

    Raises:
        WrongShape: shapes differ, or there is no such place.
        ValueError: there are no tensors.
    """
    parts = sequence(tensors, "stack")
    first = parts[0].shape
    for each in parts:
        if each.shape != first:
            raise WrongShape(
                f"shapes {shape_text(first)} and {shape_text(each.shape)} cannot be stacked; they "
                "must be equal"
            )
    if not -len(first) - 1 <= axis <= len(first):
        raise WrongShape(f"there is no place {axis} for an axis in {shape_text(first)}")
    along = axis % (len(first) + 1)
    made = by_op(STACK, "stack", out, tuple(parts), along)
    if made is not NotImplemented:
        return made
    return joined(np.stack, parts, (*first[:along], len(parts), *first[along:]), along, out)


def sequence(tensors: Any, doing: str) -> list[Any]:
    """The tensors as a list of one or more."""
    parts = list(tensors)
    if not parts:
        raise ValueError(f"{doing} needs one tensor at least")
    for each in parts:
        if not isinstance(each, Storage):
            raise TypeError(f"{doing} needs tlmem.Tensors, not {type(each).__name__}")
    return parts


def joined(function: Any, parts: list[Any], shape: Shape, axis: int, out: Any) -> Tensor:
    """Lets NumPy put the parts together."""
    dtype = "bool"
    for each in parts:
        dtype = promoted(dtype, each.dtype)
    data = [each._data(function.__name__) for each in parts]
    result = destination(out, shape, dtype, device_of(parts))
    return compute_apart(function, result, out, data, data, axis=axis)


class Shaping:
    """Shapes as methods of a tensor."""

    __slots__ = ()

    def reshape(self: Any, *shape: Any) -> Tensor:
        """The same elements in another shape: a view, or a copy where that cannot be."""
        return reshape(self, *shape)

    def flatten(self: Any) -> Tensor:
        """The same elements in one row: a view, or a copy where that cannot be."""
        return reshape(self, -1) if self.size else reshape(self, 0)

    def transpose(self: Any, *axes: Any) -> Tensor:
        """A view with its axes in another order."""
        return transpose(self, *axes)

    def permute(self: Any, *axes: Any) -> Tensor:
        """A view with its axes in another order, each of them told."""
        return permute(self, *axes)

    @property
    def T(self: Any) -> Tensor:
        """A view with its axes reversed."""
        return transpose(self)

    def swapaxes(self: Any, one: int, other: int) -> Tensor:
        """A view with two axes exchanged."""
        return swapaxes(self, one, other)

    def squeeze(self: Any, axis: int | tuple[int, ...] | None = None) -> Tensor:
        """A view without axes of length 1."""
        return squeeze(self, axis)

    def unsqueeze(self: Any, axis: int) -> Tensor:
        """A view with one more axis of length 1."""
        return unsqueeze(self, axis)

    def broadcast_to(self: Any, *shape: Any) -> Tensor:
        """A read-only view in which axes of length 1 are repeated."""
        return broadcast_to(self, *shape)
