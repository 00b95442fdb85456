"""Products of matrices and vectors, by NumPy's BLAS, into a new tensor or ``out``.

Does not cover: products of each element (``elementwise``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.runtime.autograd import row
from tlmem.runtime.computing import broadcast, by_op, compute
from tlmem.runtime.dtypes import promoted
from tlmem.runtime.errors import WrongShape
from tlmem.runtime.making import destination, device_of, temporary
from tlmem.runtime.storage import Shape, Storage, shape_text

if TYPE_CHECKING:
    from tlmem.runtime.tensor import Tensor

MATMUL = row("matmul")


def matmul(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left @ right``: the product over the last axis of one and the last but one of the other.

    A vector is a row on the left and a column on the right; that axis is not in the result. Further
    axes are broadcast. Floating dtypes go to BLAS; the result has the higher dtype of both.

    Raises:
        WrongShape: the lengths do not fit, or an operand is a single number.
        WrongDevice: the operands, or ``out``, are on different devices.
    """
    operands: tuple[Any, Any] = (left, right)
    for each in operands:
        if not isinstance(each, Storage):
            raise TypeError(f"matmul needs two tlmem.Tensors, not {type(each).__name__}")
    made = by_op(MATMUL, "matmul", out, operands)
    if made is not NotImplemented:
        return made
    shape = shape_of_product(left.shape, right.shape)
    device = device_of(list(operands))
    dtype = promoted(left.dtype, right.dtype)
    one, other = converted(left, dtype), converted(right, dtype)
    result = destination(out, shape, dtype, device)
    return compute(np.matmul, result, out, one._data("multiply"), other._data("multiply"))


def shape_of_product(left: Shape, right: Shape) -> Shape:
    """The shape of a product.

    Raises:
        WrongShape: the two do not fit.
    """
    if not left or not right or left[-1] != right[-2 if len(right) > 1 else 0]:
        raise WrongShape(
            f"shapes {shape_text(left)} and {shape_text(right)} cannot be multiplied; the last "
            "length of the first must be the last but one of the second"
        )
    row = left[-2:-1]
    column = right[-1:] if len(right) > 1 else ()
    return (*broadcast(left[:-2], right[:-2]), *row, *column)


def converted(value: Any, dtype: str) -> Any:
    """The tensor itself, or a temporary of another dtype."""
    if value.dtype == dtype:
        return value
    copy = temporary(value.shape, dtype, value._device)
    np.copyto(copy._data(), value._data("multiply"), casting="same_kind")
    return copy


def dot(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """The product of two vectors, a tensor without axes.

    Raises:
        WrongShape: they are not two vectors of one length.
    """
    if len(left.shape) != 1 or len(right.shape) != 1:
        raise WrongShape(
            f"dot needs two vectors, not shapes {shape_text(left.shape)} and "
            f"{shape_text(right.shape)}; use matmul"
        )
    return matmul(left, right, out)


def matmul_operator(left: Any, right: Any) -> Any:
    """``left @ right`` of what is not for the op of the core."""
    if isinstance(left, Storage) and isinstance(right, Storage):
        return matmul(left, right)
    return NotImplemented


class Products:
    """Products as methods of a tensor."""

    __slots__ = ()

    def matmul(self: Any, other: Tensor, out: Tensor | None = None) -> Tensor:
        """``self @ other``."""
        return matmul(self, other, out)

    def dot(self: Any, other: Any, out: Tensor | None = None) -> Tensor:
        """The product of two vectors."""
        return dot(self, other, out)
