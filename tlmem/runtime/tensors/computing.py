"""How an operation is computed that the core did not take at once: by its row, else by NumPy.

Covers: broadcasting, axes, the dtype rules of functions, letting NumPy write into memory of ours.
What the core does not take is another dtype, or more than 8 axes. NumPy computes it when the row
names a ufunc; else the core does, on a copy that it takes.
Does not cover: the rows (``rows``), the functions (``elementwise``), the order of dtypes
(``dtypes``).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.runtime.dtypes import (
    NUMPY,
    dtype_name,
    floating,
    kind_of_number,
    promoted,
    summed,
)
from tlmem.runtime.errors import WrongDtype, WrongShape
from tlmem.runtime.tensors.core_ops import (
    LOST,
    NO_ROW,
    apply,
    apply_into,
    apply_into_strictly,
    apply_reducing,
    needs,
    recorded,
    require_no_gradient,
    require_out_without_gradient,
)
from tlmem.runtime.tensors.making import destination, different_devices, temporary
from tlmem.runtime.tensors.storage import Shape, Storage, shape_text

if TYPE_CHECKING:
    from tlmem.runtime.tensors.rows import Row
    from tlmem.runtime.tensors.tensor import Tensor

PYTHON_NUMBERS = (float, int, bool)
NUMBERS = (*PYTHON_NUMBERS, np.generic)
OPERANDS = (Storage, np.ndarray, *NUMBERS)

Axis = int | tuple[int, ...] | None
MOST_OP_AXES = 8

# Which dtype a result has, given that of the operands.
OWN_DTYPE = "own"  # its function says
SAME = "same"  # theirs
ARITHMETIC = "arithmetic"  # theirs, but bool is refused
COUNTING = "counting"  # theirs, and int64 for bool; of a sum, int64 for int32 too
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


def result_dtype(name: str, rule: str, dtype: str) -> str:
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
    raise WrongDtype(f"{name} is not for bool; convert with .astype('int64')")


def adding(row: Row, dtype: str) -> str:
    """The dtype in which a reduction computes; sums and products of int32 do not fit there."""
    return summed(dtype) if row.dtype is COUNTING else dtype


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


def function(row: Row, value: Any, out: Any) -> Tensor:
    """One function of each element."""
    name, ufunc = row.name, row.ufunc
    if row.number != NO_ROW:
        made = by_op(row.number, name, out, (value,))
        if made is not NotImplemented:
            return made
    if not isinstance(value, Storage):
        raise TypeError(f"{name} needs a tlmem.Tensor, not {type(value).__name__}")
    data = value._data(name)
    dtype = result_dtype(name, row.dtype, value.dtype)
    result = destination(out, value.shape, dtype, value._device)
    if ufunc is None:
        return converted(row, value, tuple(range(value.ndim)), dtype, result, out)
    operands = (data,) if ufunc.nin == 1 else (data, constant(0, dtype))
    if row.dtype is TRUTH or dtype == value.dtype:
        return compute(ufunc, result, out, *operands)
    return compute(ufunc, result, out, *operands, dtype=NUMPY[dtype])


def converted(row: Row, value: Any, axes: Shape, dtype: str, result: Any, out: Any) -> Any:
    """The result of an op that keeps the shape, from a copy of another dtype and of two axes.

    Args:
        axes: those that the op works along, as one.
    """
    order = (*(i for i in range(value.ndim) if i not in axes), *axes)
    data = value._data(row.name).transpose(order)
    length = prod(value.shape[i] for i in axes)
    try:
        if value.size:
            copy = temporary((value.size // length, length), dtype, value._device)
            whole = copy._data().reshape(data.shape)
            np.copyto(whole, data, casting="unsafe")
            params = () if row.kind == "function" else (1,)
            apply_into_strictly(row.number, 1, copy, copy, *params)
            np.copyto(result._data().transpose(order), whole)
    except BaseException:
        if out is None:
            result.free()
        raise
    return result


def binary(ufunc: Any, rule: str, left: Any, right: Any, out: Any, row: int = NO_ROW) -> Tensor:
    """One function of each pair of elements; at least one operand is a tensor.

    Args:
        row: the op that computes it with a gradient; ``NO_ROW`` when it has none.
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
    dtype = result_dtype(name, rule, common)
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


# ---- along axes ----


def axes_of(value: Any, axis: Axis) -> Shape:
    """The axes that are meant, from 0 on; None is all of them.

    Raises:
        WrongShape: there is no such axis, or it is named twice.
        TypeError: it is not a tensor, or the axis no integer.
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


def require_some(value: Any, axis: Axis, doing: str) -> None:
    """Raises when there is nothing to choose from."""
    if not prod(value.shape[i] for i in axes_of(value, axis)):
        raise WrongShape(f"{doing} of nothing: shape {shape_text(value.shape)} has no elements")


def reduction(row: Row, value: Any, axis: Axis, keepdims: bool, out: Any) -> Tensor:
    """A reduction by a ufunc of two, where the core does not take it."""
    if row.number >= 0:
        made = reduced_by_op(row.number, row.name, value, axis, keepdims, out)
        if made is not NotImplemented:
            return made
    elif row.number == LOST:
        by_op(LOST, row.name, out, (value,))
    if row.ufunc.identity is None:
        require_some(value, axis, row.name)
    axes_of(value, axis)
    dtype = result_dtype(row.name, row.dtype, adding(row, value.dtype))
    return reduce(row.ufunc, value, dtype, axis, keepdims, out)


def along(row: Row, value: Any, axis: int, out: Any) -> Tensor:
    """An op along one axis, or along several that are taken as one."""
    axes = axes_of(value, axis)
    if len(axes) == 1:
        made = by_op(row.number, row.name, out, (value,), axes[0])
    else:
        made = by_op(LOST, row.name, out, (value,))
    if made is not NotImplemented:
        return made
    dtype = result_dtype(row.name, row.dtype, adding(row, value.dtype))
    result = destination(out, value.shape, dtype, value._device)
    if row.ufunc is None:
        return converted(row, value, axes, dtype, result, out)
    if len(axes) != 1:
        raise WrongShape(f"{row.name} takes one axis, not {axis!r}")
    data, options = value._data(row.name), {"axis": axes[0], "dtype": NUMPY[dtype]}
    return compute_apart(row.ufunc.accumulate, result, out, [data], data, **options)
