# mypy: disable-error-code="empty-body"
"""Sums, means, extremes and softmax along axes, into a new tensor or ``out``.

Functions without a body do what their rows say (``rows``). Where an intermediate result is needed
it is memory of ours too, and freed before the function returns. Does not cover: products of
matrices (``linalg``).
"""

from __future__ import annotations

from math import prod as product
from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.runtime.dtypes import NUMPY, floating
from tlmem.runtime.errors import WrongDtype
from tlmem.runtime.tensors.computing import (
    COUNTING,
    TRUTH,
    Axis,
    axes_of,
    compute_apart,
    constant,
    reduce,
    reduced,
    reduced_by_op,
    require_some,
    sum_of_bits,
)
from tlmem.runtime.tensors.core_ops import (
    apply_apart,
    apply_into_strictly,
    apply_strictly,
    needs,
    row,
)
from tlmem.runtime.tensors.making import destination, temporary
from tlmem.runtime.tensors.rows import REDUCING, by_numpy, by_row, by_row_or, method
from tlmem.runtime.tensors.storage import Shape, Storage

if TYPE_CHECKING:
    from tlmem.runtime.tensors.tensor import Tensor

VAR, SQRT = row("var"), row("sqrt")


@by_row
def sum(
    value: Tensor, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The sum along axes; int64 for bool and integers."""


@by_numpy(np.multiply, COUNTING, kind=REDUCING, has_gradient=False)
def prod(
    value: Tensor, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The product along axes; int64 for bool and integers."""


def mean_of_others(row: Any, value: Any, axis: Axis, keepdims: bool, out: Any) -> Tensor:
    """The mean of what the op does not take: of integers from an exact sum, by NumPy."""
    made = reduced_by_op(row.number, row.name, value, axis, keepdims, out)
    if made is not NotImplemented:
        return made
    axes = axes_of(value, axis)
    if value.dtype in ("float32", "float64"):
        return reduced_as_rows(row.number, value, axes, keepdims, out)
    total = temporary(reduced(value.shape, axes, True), "int64", value._device)
    reduce(np.add, value, "int64", axis, True, total)
    dtype = floating(value.dtype)
    result = destination(out, reduced(value.shape, axes, keepdims), dtype, value._device)
    into = result._data().reshape(total.shape)
    count = constant(product(value.shape[i] for i in axes), "int64")
    np.true_divide(total._data(), count, out=into, dtype=NUMPY[dtype])
    return result


@by_row_or(mean_of_others)
def mean(
    value: Tensor, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The mean along axes; float32 for bool and integers, from an exact sum. NaN of nothing."""


def reduced_as_rows(
    number: int, value: Any, axes: Shape, keepdims: bool, out: Any, *params: int
) -> Tensor:
    """By an op, of more axes than it takes: of a copy whose axes are what is left, and the rest."""
    order = (*(i for i in range(value.ndim) if i not in axes), *axes)
    length = product(value.shape[i] for i in axes)
    count = product(reduced(value.shape, axes, False))
    result = destination(out, reduced(value.shape, axes, keepdims), value.dtype, value._device)
    try:
        copy = temporary((count, length), value.dtype, value._device)
        data = value._data().transpose(order)
        np.copyto(copy._data().reshape(data.shape), data)
        rows = temporary((count,), value.dtype, value._device)
        apply_into_strictly(number, 1, rows, copy, 0b10, False, *params)
        np.copyto(result._data(), rows._data().reshape(result.shape))
    except BaseException:
        if out is None:
            result.free()
        raise
    return result


@by_row
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
    return reduced_as_rows(VAR, value, axes_of(value, axis), keepdims, out, correction)


@method
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


@by_row
def max(
    value: Tensor, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The greatest along axes. WrongShape: there is none among nothing."""


@by_row
def min(
    value: Tensor, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """The least along axes. WrongShape: there is none among nothing."""


@by_numpy(np.logical_or, TRUTH, kind=REDUCING)
def any(
    value: Tensor, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Whether one is true at least."""


@by_numpy(np.logical_and, TRUTH, kind=REDUCING)
def all(
    value: Tensor, axis: Axis = None, keepdims: bool = False, out: Tensor | None = None
) -> Tensor:
    """Whether every one is true."""


@method
def argmax(value: Tensor, axis: int | None = None, out: Tensor | None = None) -> Tensor:
    """Where the greatest is along an axis, or in all elements row by row; the first of equals."""
    return position(np.argmax, value, axis, out)


@method
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


@by_row
def softmax(value: Tensor, axis: int = -1, out: Tensor | None = None) -> Tensor:
    """``exp(value)`` along an axis, divided by its sum; without overflow for any value."""


@by_row
def log_softmax(value: Tensor, axis: int = -1, out: Tensor | None = None) -> Tensor:
    """The logarithm of ``softmax``, exact also where that is nearly 0."""


@by_row
def cumsum(value: Tensor, axis: int = -1, out: Tensor | None = None) -> Tensor:
    """The sum of the elements up to each one along an axis; int64 for bool and integers."""
