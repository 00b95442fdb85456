"""How an operation on elements is done: operands, shape and dtype of the result, then NumPy.

Covers: broadcasting, the dtype rules of functions, letting NumPy write into memory of ours.
Does not cover: which functions there are (``elementwise``), the order of dtypes (``dtypes``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.runtime.dtypes import NUMPY, dtype_name, floating, kind_of_number, promoted
from tlmem.runtime.errors import WrongDtype, WrongShape
from tlmem.runtime.tensors.core_ops import (
    LOST,
    NO_ROW,
    apply,
    apply_into,
    needs,
    recorded,
    require_no_gradient,
    require_out_without_gradient,
)
from tlmem.runtime.tensors.making import destination, different_devices, temporary
from tlmem.runtime.tensors.storage import Shape, Storage, shape_text

if TYPE_CHECKING:
    from tlmem.runtime.tensors.tensor import Tensor

PYTHON_NUMBERS = (float, int, bool)
NUMBERS = (*PYTHON_NUMBERS, np.generic)
OPERANDS = (Storage, np.ndarray, *NUMBERS)

# Which dtype a result has, given that of the operands.
SAME = "same"  # theirs
ARITHMETIC = "arithmetic"  # theirs, but bool is refused
COUNTING = "counting"  # theirs, and int64 for bool
FRACTION = "fraction"  # theirs when it has fractions, else float32
TRUTH = "truth"  # bool


def broadcast(*shapes: Shape) -> Shape:
    """The shape that several shapes have together.

    Raises:
        WrongShape: they do not fit.
    """
    axes = max([len(shape) for shape in shapes])
    found = [1] * axes
    for shape in shapes:
        for axis, length in enumerate(shape, axes - len(shape)):
            if found[axis] == 1:
                found[axis] = length
            elif length not in (1, found[axis]):
                texts = " and ".join(shape_text(shape) for shape in shapes)
                raise WrongShape(
                    f"shapes {texts} cannot be broadcast together; each pair of lengths, from the "
                    "last on, must be equal or 1"
                )
    return tuple(found)


def constant(value: Any, dtype: str) -> Any:
    """A number as NumPy would convert it for each call: an array, which is kept for the next one.

    What does not fit the dtype, and what no key finds again, is left to NumPy, with its warnings.
    """
    if not -FLOAT32_MOST < value < FLOAT32_MOST:  # nan, too
        return value
    key = (dtype, value or str(value))  # -0.0 is equal to 0 and to False
    found = _constants.get(key)
    if found is None:
        try:
            found = np.array(value, NUMPY[dtype])
        except OverflowError:
            return value
        if len(_constants) >= KEPT_CONSTANTS:
            _constants.clear()
        found.flags.writeable = False
        _constants[key] = found
    return found


FLOAT32_MOST = float(np.finfo(np.float32).max)
KEPT_CONSTANTS = 256
_constants: dict[tuple[str, Any], Any] = {}


def result_dtype(ufunc: Any, rule: str, dtype: str) -> str:
    """The dtype of the result of an operation on this dtype.

    Raises:
        WrongDtype: the operation is not for it.
    """
    if rule is SAME:
        return dtype
    if rule is TRUTH:
        return "bool"
    if rule is FRACTION:
        return floating(dtype)
    if dtype != "bool":
        return dtype
    if rule is COUNTING:
        return "int64"
    raise WrongDtype(f"{ufunc.__name__} is not for bool; convert with .astype('int64')")


def number(value: Any) -> bool | int | float:
    """A Python number of a Python or NumPy number.

    Raises:
        WrongDtype: it is complex, or no number.
    """
    if type(value) in PYTHON_NUMBERS:
        return value
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, PYTHON_NUMBERS):
        return plain
    raise WrongDtype(f"{value!r} is not a bool, an int or a float")


def compute(function: Any, result: Any, out: Any, *operands: Any, **options: Any) -> Any:
    """Lets NumPy fill the result; a result that was made for it is freed when that fails."""
    try:
        function(*operands, out=result._data(), **options)
    except BaseException as error:
        if out is None:
            result.free()
        if isinstance(error, TypeError) and not isinstance(error, WrongDtype):
            raise WrongDtype(f"{getattr(function, '__name__', 'this')}: {error}") from None
        raise
    return result


def compute_apart(
    function: Any, result: Any, out: Any, read: Any, *operands: Any, **options: Any
) -> Any:
    """The same for functions that write before they have read everything, unlike ufuncs.

    Args:
        read: arrays among the operands; where ``out`` overlaps one, the result is made beside it.
    """
    arrays = [each for each in read if isinstance(each, np.ndarray)]
    if out is None or not any(np.may_share_memory(out._data(), each) for each in arrays):
        return compute(function, result, out, *operands, **options)
    beside = temporary(result.shape, result.dtype, result._device)
    compute(function, beside, out, *operands, **options)
    np.copyto(result._data(), beside._data())
    return result


def by_op(row: int, name: str, out: Any, operands: tuple[Any, ...], *params: Any) -> Any:
    """The result of an op of the core, recorded when an operand needs a gradient.

    NotImplemented where NumPy is to compute it, and no gradient is lost by that. The bits are the
    same with ``out`` and without.

    Args:
        row: number of the op, or ``LOST``.
    Raises:
        NotDifferentiable: a gradient would be lost.
    """
    if out is not None:
        if row >= 0:
            made = apply_into(row, len(operands), out, *operands, *params)
            if made is not NotImplemented:
                return made
        require_out_without_gradient(name, out, *operands)
    elif row == LOST:
        require_no_gradient(name, *operands)
    else:
        made = apply(row, len(operands), *operands, *params)
        if made is NotImplemented and needs(*operands):
            made = recorded(row, name, operands, *params)
        return made
    return NotImplemented


def unary(ufunc: Any, rule: str, value: Any, out: Any, row: int = NO_ROW) -> Tensor:
    """One function of each element.

    Args:
        row: the op that computes it with a gradient; ``NO_ROW`` when it has none.
    """
    if row != NO_ROW:
        made = by_op(row, ufunc.__name__, out, (value,))
        if made is not NotImplemented:
            return made
    if not isinstance(value, Storage):
        raise TypeError(f"{ufunc.__name__} needs a tlmem.Tensor, not {type(value).__name__}")
    data = value._data(ufunc.__name__)
    dtype = result_dtype(ufunc, rule, value.dtype)
    result = destination(out, value.shape, dtype, value._device)
    if rule is TRUTH or dtype == value.dtype:
        return compute(ufunc, result, out, data)
    return compute(ufunc, result, out, data, dtype=NUMPY[dtype])


def binary(ufunc: Any, rule: str, left: Any, right: Any, out: Any, row: int = NO_ROW) -> Tensor:
    """One function of each pair of elements; at least one operand is a tensor.

    Args:
        row: as of ``unary``.
    """
    name = ufunc.__name__
    if row != NO_ROW:
        made = by_op(row, name, out, (left, right))
        if made is not NotImplemented:
            return made
    one, one_dtype = operand(left, name)
    other, other_dtype = operand(right, name)
    if one_dtype is None:
        if other_dtype is None:
            raise TypeError(f"{name} needs a tlmem.Tensor among its operands")
        shape, common = other.shape, promoted(other_dtype, kind_of_number(one))
        one = constant(one, common) if common == other_dtype else one
    elif other_dtype is None:
        shape, common = one.shape, promoted(one_dtype, kind_of_number(other))
        other = constant(other, common) if common == one_dtype else other
    else:
        shape = one.shape if one.shape == other.shape else broadcast(one.shape, other.shape)
        common = promoted(one_dtype, other_dtype)
    device = common_device(left, right)
    dtype = result_dtype(ufunc, rule, common)
    result = destination(out, shape, dtype, device)
    if rule is TRUTH or (one_dtype == dtype and other_dtype in (dtype, None)):
        return compute(ufunc, result, out, one, other)
    return compute(ufunc, result, out, one, other, dtype=NUMPY[dtype])


def operand(value: Any, doing: str) -> tuple[Any, str | None]:
    """What NumPy is given for an operand, and its dtype; None for a number."""
    if isinstance(value, Storage):
        return value._data(doing), value.dtype
    if isinstance(value, np.ndarray):
        return value, dtype_name(value.dtype)
    return number(value), None


def common_device(*operands: Any) -> int:
    """The device of the tensors among the operands."""
    device: int | None = None
    for each in operands:
        if isinstance(each, Storage):
            if device is None:
                device = each._device
            elif each._device != device:
                raise different_devices([device, each._device], each)
    if device is None:
        raise TypeError("one operand at least must be a tlmem.Tensor")
    return device
