"""Sums, means, extremes and softmax along axes, into a new tensor or ``out``.

Where an intermediate result is needed it is memory of ours too, and freed before the function
returns. Does not cover: products of matrices (``linalg``).
"""

from __future__ import annotations

from math import prod as product
from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.runtime.dtypes import NUMPY, floating
from tlmem.runtime.errors import WrongDtype, WrongShape
from tlmem.runtime.tensors.computing import by_op, compute, compute_apart, constant
from tlmem.runtime.tensors.core_ops import (
    LOST,
    apply_along,
    apply_apart,
    apply_reducing,
    apply_strictly,
    needs,
    row,
)
from tlmem.runtime.tensors.making import destination, temporary
from tlmem.runtime.tensors.storage import Shape, Storage, shape_text

if TYPE_CHECKING:
    from tlmem.runtime.tensors.tensor import Tensor

Axis = int | tuple[int, ...] | None
MOST_OP_AXES = 8

SUM, MEAN, VAR, MAX, MIN, SQRT = map(row, ("sum", "mean", "var", "max", "min", "sqrt"))
SOFTMAX, LOG_SOFTMAX = row("softmax"), row("log_softmax")


def axes_of(value: Any, axis: Axis) -> Shape:
    """The axes that are meant, from 0 on; None is all of them.

    Raises:
        WrongShape: there is no such axis, or it is named twice.
        TypeError: it is no tensor, or the axis no integer.
    """
    if not isinstance(value, Storage):
        raise TypeError(f"a tlmem.Tensor is needed, not {type(value).__name__}")
    if axis is None:
        return tuple(range(value.ndim))
    found = []
    for each in axis if isinstance(axis, tuple | list) else (axis,):
        if isinstance(each, bool) or not hasattr(each, "__index__"):
            raise TypeError(f"an axis is an integer, not {each!r}")
        number = each.__index__()
        if not -value.ndim <= number < value.ndim:
            known = f"axes {-value.ndim} to {value.ndim - 1}" if value.ndim else "no axes"
            raise WrongShape(
                f"there is no axis {number} in shape {shape_text(value.shape)}; it has {known}"
            )
        found.append(number % value.ndim)
    if len(set(found)) != len(found):
        raise WrongShape(f"axes {axis} name the same one twice")
    return tuple(found)


def reduced(shape: Shape, axes: Shape, keepdims: bool) -> Shape:
    """The shape that is left when axes are reduced."""
    if keepdims:
        return tuple(1 if i in axes else length for i, length in enumerate(shape))
    return tuple(length for i, length in enumerate(shape) if i not in axes)


def reduce(
    ufunc: Any, value: Any, dtype: str, axis: Axis, keepdims: bool, out: Any, **options: Any
) -> Tensor:
    """One ufunc along the axes, computed in the dtype of the result.

    NumPy goes through the elements as they lie in both, and the last bits hang on that: what does
    not lie row by row gets the result from beside.
    """
    axes = axes_of(value, axis)
    data = value._data(ufunc.__name__)
    result = destination(out, reduced(value.shape, axes, keepdims), dtype, value._device)
    options |= {"axis": axes, "keepdims": keepdims, "dtype": NUMPY[dtype]}
    if out is None or result._data().flags.c_contiguous:
        return compute(ufunc.reduce, result, out, data, **options)
    beside = temporary(result.shape, dtype, value._device)
    compute(ufunc.reduce, beside, out, data, **options)
    np.copyto(result._data(), beside._data())
    return result


def reduced_by_op(
    number: int, name: str, value: Any, axis: Axis, keepdims: bool, out: Any, *params: int
) -> Any:
    """By an op; NotImplemented where NumPy is to compute it, which also says what is wrong."""
    if out is None:
        made = apply_reducing(number, value, axis, keepdims, *params)
        if made is not NotImplemented:
            return made
    mask = sum_of_bits(axes_of(value, axis))
    if mask >> MOST_OP_AXES:
        return by_op(LOST, name, out, (value,))
    return by_op(number, name, out, (value,), mask, keepdims, *params)


def sum_of_bits(axes: Shape) -> int:
    """Axes as the bits of a number."""
    mask = 0
    for each in axes:
        mask |= 1 << each
    return mask


def softened_by_op(number: int, name: str, value: Any, axis: int, out: Any) -> Any:
    """Likewise, along one axis."""
    if out is None and (made := apply_along(number, value, axis)) is not NotImplemented:
        return made
    axes = axes_of(value, axis)
    if len(axes) != 1:
        return by_op(LOST, name, out, (value,))
    return by_op(number, name, out, (value,), axes[0])


def sum(
    value: Tensor, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The sum along axes; int64 for bool and int64."""
    made = reduced_by_op(SUM, "sum", value, axis, keepdims, out)
    if made is not NotImplemented:
        return made
    return reduce(np.add, value, counting(value), axis, keepdims, out)


def prod(
    value: Tensor, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The product along axes; int64 for bool and int64."""
    by_op(LOST, "prod", out, (value,))
    return reduce(np.multiply, value, counting(value), axis, keepdims, out)


def counting(value: Any) -> str:
    """The dtype of a sum."""
    dtype: str = getattr(value, "dtype", "")
    return "int64" if dtype == "bool" else dtype


def mean(
    value: Tensor, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The mean along axes; float32 for bool and int64, from an exact sum. NaN of nothing."""
    made = reduced_by_op(MEAN, "mean", value, axis, keepdims, out)
    if made is not NotImplemented:
        return made
    axes = axes_of(value, axis)
    count = product(value.shape[i] for i in axes)
    if value.dtype in ("float32", "float64"):
        result = sum(value, axis, keepdims, out)
        np.true_divide(result._data(), constant(count, value.dtype), out=result._data())
        return result
    total = within(value, axes)
    reduce(np.add, value, "int64", axis, True, total)
    dtype = floating(value.dtype)
    result = destination(out, reduced(value.shape, axes, keepdims), dtype, value._device)
    into = result._data().reshape(total.shape)
    np.true_divide(total._data(), constant(count, "int64"), out=into, dtype=NUMPY[dtype])
    return result


def within(value: Any, axes: Shape, dtype: str = "int64") -> Tensor:
    """A temporary for a reduction that keeps its axes."""
    return temporary(reduced(value.shape, axes, True), dtype, value._device)


def var(
    value: Tensor,
    axis: Axis = None,
    keepdims: bool = False,
    correction: int = 1,
    out: Tensor | None = None,
) -> Tensor:
    """The variance along axes: squares of distances from the mean, over count less ``correction``.

    Raises:
        WrongDtype: the tensor is not of a floating dtype.
    """
    if isinstance(value, Storage) and value.dtype not in ("float32", "float64"):
        axes_of(value, axis)
        raise WrongDtype(f"var needs float32 or float64, not {value.dtype}; use .astype('float32')")
    made = reduced_by_op(VAR, "var", value, axis, keepdims, out, correction)
    if made is not NotImplemented:
        return made
    axes = axes_of(value, axis)
    count = product(value.shape[i] for i in axes)
    distance = temporary(value.shape, value.dtype, value._device)
    middle = mean(value, axis, True, within(value, axes, value.dtype))
    np.subtract(value._data(), middle._data(), out=distance._data())
    np.square(distance._data(), out=distance._data())
    result = sum(distance, axis, keepdims, out)
    divisor = constant(count - correction if count > correction else 0, value.dtype)
    np.true_divide(result._data(), divisor, out=result._data())
    return result


def std(
    value: Tensor,
    axis: Axis = None,
    keepdims: bool = False,
    correction: int = 1,
    out: Tensor | None = None,
) -> Tensor:
    """The standard deviation, the root of ``var``."""
    if out is None and needs(value):
        mask = sum_of_bits(axes_of(value, axis))
        spread = apply_apart(VAR, 1, value, mask, keepdims, correction)
        return apply_strictly(SQRT, 1, spread, 1.0)
    result = var(value, axis, keepdims, correction, out)
    np.sqrt(result._data(), out=result._data())
    return result


def max(
    value: Tensor, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The greatest along axes. WrongShape: there is none among nothing."""
    made = reduced_by_op(MAX, "max", value, axis, keepdims, out)
    if made is not NotImplemented:
        return made
    require_some(value, axis, "max")
    return reduce(np.maximum, value, value.dtype, axis, keepdims, out)


def min(
    value: Tensor, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The least along axes. WrongShape: there is none among nothing."""
    made = reduced_by_op(MIN, "min", value, axis, keepdims, out)
    if made is not NotImplemented:
        return made
    require_some(value, axis, "min")
    return reduce(np.minimum, value, value.dtype, axis, keepdims, out)


def any(
    value: Tensor, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Whether one is true at least."""
    return reduce(np.logical_or, value, "bool", axis, keepdims, out)


def all(
    value: Tensor, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Whether every one is true."""
    return reduce(np.logical_and, value, "bool", axis, keepdims, out)


def argmax(value: Tensor, axis: int | None = None, out: Tensor | None = None) -> Tensor:
    """Where the greatest is along an axis, or in all elements row by row; the first of equals."""
    return position(np.argmax, value, axis, out)


def argmin(value: Tensor, axis: int | None = None, out: Tensor | None = None) -> Tensor:
    """Where the least is along an axis, or in all elements row by row; the first of equals."""
    return position(np.argmin, value, axis, out)


def position(function: Any, value: Any, axis: int | None, out: Any) -> Tensor:
    """The index that a function of NumPy finds along an axis."""
    axes = axes_of(value, axis)
    require_some(value, axis, function.__name__)
    data = value._data(function.__name__)
    result = destination(out, reduced(value.shape, axes, False), "int64", value._device)
    along = None if axis is None else axes[0]
    return compute_apart(function, result, out, [data], data, axis=along)


def require_some(value: Any, axis: Axis, doing: str) -> None:
    """Raises when there is nothing to choose from."""
    if not product(value.shape[i] for i in axes_of(value, axis)):
        raise WrongShape(f"{doing} of nothing: shape {shape_text(value.shape)} has no elements")


def softmax(value: Tensor, axis: int = -1, out: Tensor | None = None) -> Tensor:
    """``exp(value)`` along an axis, divided by its sum; without overflow for any value."""
    made = softened_by_op(SOFTMAX, "softmax", value, axis, out)
    if made is not NotImplemented:
        return made
    result, sums = exponentials(value, axis, out)
    np.true_divide(result._data(), sums._data(), out=result._data())
    return result


def log_softmax(value: Tensor, axis: int = -1, out: Tensor | None = None) -> Tensor:
    """The logarithm of ``softmax``, exact also where that is nearly 0."""
    made = softened_by_op(LOG_SOFTMAX, "log_softmax", value, axis, out)
    if made is not NotImplemented:
        return made
    axes = axes_of(value, axis)
    dtype = floating(value.dtype)
    sums, powers = within(value, axes, dtype), temporary(value.shape, dtype, value._device)
    result = destination(out, value.shape, dtype, value._device)
    if not value.size:
        return result
    reduce(np.maximum, value, dtype, axes, True, sums)
    np.subtract(value._data(), sums._data(), out=result._data(), dtype=NUMPY[dtype])
    np.exp(result._data(), out=powers._data())
    reduce(np.add, powers, dtype, axes, True, sums)
    np.log(sums._data(), out=sums._data())
    np.subtract(result._data(), sums._data(), out=result._data())
    return result


def exponentials(value: Any, axis: int, out: Any) -> tuple[Any, Any]:
    """``exp(value - max)`` in the result, and its sums along the axis in a temporary."""
    axes = axes_of(value, axis)
    dtype = floating(value.dtype)
    sums = within(value, axes, dtype)
    result = destination(out, value.shape, dtype, value._device)
    if value.size:
        reduce(np.maximum, value, dtype, axes, True, sums)
        np.subtract(value._data(), sums._data(), out=result._data(), dtype=NUMPY[dtype])
        np.exp(result._data(), out=result._data())
        reduce(np.add, result, dtype, axes, True, sums)
    return result, sums


class Reductions:
    """Reductions as methods of a tensor."""

    __slots__ = ()

    def sum(
        self: Any, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """The sum along axes; int64 for bool and int64."""
        return sum(self, axis, keepdims, out)

    def prod(
        self: Any, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """The product along axes; int64 for bool and int64."""
        return prod(self, axis, keepdims, out)

    def mean(
        self: Any, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """The mean along axes; float32 for bool and int64."""
        return mean(self, axis, keepdims, out)

    def var(
        self: Any,
        axis: Axis = None,
        keepdims: bool = False,
        correction: int = 1,
        out: Tensor | None = None,
    ) -> Tensor:
        """The variance along axes."""
        return var(self, axis, keepdims, correction, out)

    def std(
        self: Any,
        axis: Axis = None,
        keepdims: bool = False,
        correction: int = 1,
        out: Tensor | None = None,
    ) -> Tensor:
        """The standard deviation along axes."""
        return std(self, axis, keepdims, correction, out)

    def max(
        self: Any, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """The greatest along axes."""
        return max(self, axis, keepdims, out)

    def min(
        self: Any, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """The least along axes."""
        return min(self, axis, keepdims, out)

    def any(
        self: Any, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Whether one is true at least."""
        return any(self, axis, keepdims, out)

    def all(
        self: Any, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
    ) -> Tensor:
        """Whether every one is true."""
        return all(self, axis, keepdims, out)

    def argmax(self: Any, axis: int | None = None, out: Tensor | None = None) -> Tensor:
        """Where the greatest is."""
        return argmax(self, axis, out)

    def argmin(self: Any, axis: int | None = None, out: Tensor | None = None) -> Tensor:
        """Where the least is."""
        return argmin(self, axis, out)

    def softmax(self: Any, axis: int = -1, out: Tensor | None = None) -> Tensor:
        """``exp`` along an axis, divided by its sum."""
        return softmax(self, axis, out)
