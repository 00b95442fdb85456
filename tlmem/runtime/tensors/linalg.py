"""Products of matrices and vectors, by NumPy's BLAS, into a new tensor or ``out``.

Does not cover: products of each element (``elementwise``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.runtime.dtypes import NUMPY, dtype_name, promoted
from tlmem.runtime.errors import WrongShape
from tlmem.runtime.tensors.computing import broadcast, by_op, common_device, compute, operand
from tlmem.runtime.tensors.core_ops import row
from tlmem.runtime.tensors.making import destination, temporary
from tlmem.runtime.tensors.rows import by_row, method
from tlmem.runtime.tensors.storage import Shape, Storage, shape_text

if TYPE_CHECKING:
    from tlmem.runtime.tensors.tensor import Tensor

MATMUL = row("matmul")
FACTORS = (Storage, np.ndarray)


@by_row
def matmul(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left @ right``: the product over the last axis of one and the last but one of the other.

    A vector is a row on the left and a column on the right; that axis is not in the result. Further
    axes are broadcast. Floating dtypes go to BLAS; the result has the higher dtype of both. One of
    the two may be a NumPy array.

    Raises:
        WrongShape: the lengths do not fit, or an operand is a single number.
        WrongDevice: the operands, or ``out``, are on different devices.
    """
    operands: tuple[Any, Any] = (left, right)
    if not any(isinstance(each, Storage) for each in operands) or not all(
        isinstance(each, FACTORS) for each in operands
    ):
        kinds = " and ".join(type(each).__name__ for each in operands)
        raise TypeError(f"matmul needs a tlmem.Tensor or two, and else an array, not {kinds}")
    made = by_op(MATMUL, "matmul", out, operands)
    if made is not NotImplemented:
        return made
    shape = shape_of_product(left.shape, right.shape)
    device = common_device(left, right)
    dtype = promoted(dtype_name(left.dtype), dtype_name(right.dtype))
    one, other = converted(left, dtype), converted(right, dtype)
    factors = [operand(each, "multiply")[0] for each in (one, other)]
    return compute(np.matmul, destination(out, shape, dtype, device), out, *factors)


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
    """The tensor or array itself, or a temporary of another dtype."""
    if isinstance(value, np.ndarray):
        return value.astype(NUMPY[dtype], copy=False)
    if value.dtype == dtype:
        return value
    copy = temporary(value.shape, dtype, value._device)
    np.copyto(copy._data(), value._data("multiply"), casting="same_kind")
    return copy


@method
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
    if isinstance(left, FACTORS) and isinstance(right, FACTORS):
        return matmul(left, right)
    return NotImplemented
