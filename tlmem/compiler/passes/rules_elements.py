"""Rules of functions of each element, and of ops along axes; most follow from the op's row.

See also: ``tlmem/runtime/tensors/rows.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from tlmem.compiler.passes.abstract import UNKNOWN, PlainType, TensorType, kind_of
from tlmem.compiler.passes.shape_rules import NotKnown, Rule
from tlmem.runtime.dtypes import INTEGER, RANK, WHOLE, floating, kind_of_number
from tlmem.runtime.errors import WrongDevice, WrongDtype, WrongShape
from tlmem.runtime.tensors.computing import TRUTH, adding, broadcast, reduced, result_dtype
from tlmem.runtime.tensors.core_ops import LOST, NO_ROW
from tlmem.runtime.tensors.operators import METHODS, ROWS
from tlmem.runtime.tensors.rows import ALONG, FUNCTION, OF_TWO, REDUCING, Row
from tlmem.runtime.tensors.storage import Shape, shape_text

Pair = tuple[Shape | None, str | None]

# ---- what operands are together ----


def shape_and_dtype(value: Any) -> Pair:
    """Of an operand; a number has shape () and the dtype that never widens a tensor of its kind.

    Raises:
        NotKnown: it may be anything. TypeError: it is no operand.
    """
    if isinstance(value, TensorType):
        return value.shape, value.dtype
    if value is UNKNOWN:
        raise NotKnown
    kind = value.kind if isinstance(value, PlainType) else type(value)
    if kind in (bool, int, float):
        return (), kind_of_number(kind())
    raise TypeError(f"{kind.__name__} is not an operand of a tensor")


def together(*values: Any) -> Pair:
    """The shape and dtype that operands have together.

    Raises:
        WrongShape: they cannot be broadcast.
    """
    pairs = [shape_and_dtype(value) for value in values]
    return common_shape([shape for shape, _ in pairs]), common_dtype([each for _, each in pairs])


def common_shape(shapes: list[Shape | None]) -> Shape | None:
    """Shapes broadcast; None when one is not known."""
    known = [shape for shape in shapes if shape is not None]
    found = broadcast(*known) if known else None
    return found if len(known) == len(shapes) else None


def common_dtype(dtypes: list[str | None]) -> str | None:
    """The highest dtype; None when one is not known that could be higher."""
    known = [dtype for dtype in dtypes if dtype is not None]
    found = max(known, key=RANK.__getitem__, default=None)
    found = "int64" if found == INTEGER else found
    return found if len(known) == len(dtypes) or found == "float64" else None


def common_device(*values: Any) -> int | None:
    """The device of the tensors; None when it is not known.

    Raises:
        WrongDevice: they are on several.
    """
    devices = [value.device for value in values if isinstance(value, TensorType)]
    known = {device for device in devices if device is not None}
    if len(known) > 1:
        raise WrongDevice("operands on different devices")
    return known.pop() if None not in devices and known else None


def fresh(shape: Shape | None, dtype: str | None, *operands: Any, grad: Any = False) -> TensorType:
    """A tensor with memory of its own on the device of the operands."""
    return TensorType(shape, dtype, common_device(*operands), grad, contiguous=True)


def ruled(row: Row, dtype: str | None) -> str | None:
    """The dtype of a result; that of a truth is known whatever the operands are.

    Raises:
        WrongDtype: the operation is not for this dtype.
    """
    if row.dtype is TRUTH:
        return "bool"
    if dtype is None:
        return None
    found = result_dtype(row.name, row.dtype, dtype)
    if row.ufunc in BITWISE and dtype not in WHOLE:
        raise WrongDtype(f"{row.name} is not for {dtype}")
    return found


BITWISE = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert)

# ---- functions of each element ----


def of_two(row: Row) -> Rule:
    """The rule of a function of two operands."""

    def infer(left: Any, right: Any) -> TensorType:
        shape, dtype = together(left, right)
        return fresh(shape, ruled(row, dtype), left, right)

    return Rule(infer, elementwise=True)


def of_one(row: Row) -> Rule:
    """The rule of a function of one tensor."""

    def infer(value: Any) -> TensorType:
        found = tensor(value)
        return fresh(found.shape, ruled(row, found.dtype), found)

    return Rule(infer, elementwise=True)


def tensor(value: Any) -> TensorType:
    """The value when it is a tensor.

    Raises:
        NotKnown: it may be one. TypeError: it is none.
    """
    if isinstance(value, TensorType):
        return value
    if value is UNKNOWN:
        raise NotKnown
    raise TypeError("a tlmem.Tensor is needed")


def is_none(value: Any) -> bool:
    """Whether a value is known to be None."""
    return kind_of(value) is type(None)


def clip(value: Any, low: Any, high: Any) -> TensorType:
    bounds = [each for each in (low, high) if not is_none(each)]
    if not bounds:
        raise ValueError("clip needs a limit")
    return fresh(*together(value, *bounds), value, *bounds)


def where(condition: Any, left: Any, right: Any) -> TensorType:
    truth = tensor(condition)
    if truth.dtype not in ("bool", None):
        raise WrongDtype("where needs a bool tensor as condition")
    shape, dtype = together(left, right)
    return fresh(common_shape([truth.shape, shape]), dtype, truth, left, right)


# ---- reductions ----


def axes_of(value: TensorType, axis: Any) -> Shape:
    """The axes that are meant, from 0 on, as in the runtime.

    Raises:
        NotKnown: the shape or the axis is not known. WrongShape, TypeError: there are none such.
    """
    if value.shape is None:
        raise NotKnown
    rank = len(value.shape)
    if axis is None:
        return tuple(range(rank))
    found = []
    for each in axis if isinstance(axis, tuple) else (axis,):
        if each is UNKNOWN or isinstance(each, PlainType):
            raise NotKnown
        if type(each) is not int:
            raise TypeError("an axis is an integer")
        if not -rank <= each < rank:
            raise WrongShape(f"there is no axis {each} in shape {shape_text(value.shape)}")
        found.append(each % rank)
    if len(set(found)) != len(found):
        raise WrongShape(f"axes {axis} name the same one twice")
    return tuple(found)


def along(
    value: Any, axis: Any, keepdims: Any, of_dtype: Callable[[str], str | None]
) -> TensorType:
    """What is left of a tensor when axes are reduced; its rank only when they are not known."""
    found = tensor(value)
    dtype = None if found.dtype is None else of_dtype(found.dtype)
    try:
        axes = axes_of(found, axis)
        if keepdims is UNKNOWN or isinstance(keepdims, PlainType):
            raise NotKnown
        shape = reduced(found.shape or (), axes, bool(keepdims))
    except NotKnown:
        shape = None
    return fresh(shape, dtype, found)


def fractions(dtype: str) -> str:
    """The dtype, which must have fractions."""
    if dtype != floating(dtype):
        raise WrongDtype(f"float32 or float64 is needed, not {dtype}")
    return dtype


def reduction(row: Row) -> Rule:
    """The rule of a reduction; one by a ufunc without an identity needs something to reduce."""
    of_some = row.ufunc is not None and row.ufunc.identity is None

    def infer(value: Any, axis: Any = None, keepdims: Any = False) -> TensorType:
        made = along(value, axis, keepdims, lambda dtype: ruled(row, adding(row, dtype)))
        if of_some and made.shape is not None:
            require_some(value, axis)
        return made

    return Rule(infer)


def require_some(value: TensorType, axis: Any) -> None:
    """Raises when there is nothing to choose from."""
    shape = value.shape or ()
    if not prod(shape[i] for i in axes_of(value, axis)):
        raise WrongShape(f"nothing to choose from in shape {shape_text(shape)}")


def spread(value: Any, axis: Any = None, keepdims: Any = False, correction: Any = 1) -> TensorType:
    return along(value, axis, keepdims, fractions)


def position(value: Any, axis: Any = None) -> TensorType:
    if isinstance(axis, tuple):
        raise NotKnown
    made = along(value, axis, False, lambda dtype: "int64")
    if made.shape is not None:
        require_some(value, axis)
    return TensorType(made.shape, "int64", made.device, False, True)


def along_one(row: Row) -> Rule:
    """The rule of an op along an axis that keeps the shape."""

    def infer(value: Any, axis: Any = -1) -> TensorType:
        found = tensor(value)
        if found.shape is not None and axis is not UNKNOWN and not isinstance(axis, PlainType):
            axes_of(found, axis)
        dtype = None if found.dtype is None else ruled(row, adding(row, found.dtype))
        return fresh(found.shape, dtype, found)

    return Rule(infer)


def rule_of_row(row: Row) -> Rule:
    """The rule of an operation whose function follows from its row."""
    rule = OF_KIND[row.kind](row)
    return replace(
        rule, out=True, differentiable=row.number != NO_ROW, has_gradient=row.number != LOST
    )


OF_KIND = {FUNCTION: of_one, OF_TWO: of_two, REDUCING: reduction, ALONG: along_one}
ONE = {name: row for name, row in ROWS.items() if row.kind == FUNCTION}
TWO = {name: row for name, row in ROWS.items() if row.kind == OF_TWO}
ALIASES = {name: made.__name__ for name, made in METHODS.items() if made.__name__ != name}
"""Name of a method -> that of its function, where they differ."""
RULES = {
    **{name: rule_of_row(row) for name, row in ROWS.items()},
    **{alias: rule_of_row(ROWS[name]) for alias, name in ALIASES.items()},
    "clip": Rule(clip, out=True, elementwise=True),
    "where": Rule(where, out=True),
    "var": Rule(spread, out=True),
    "std": Rule(spread, out=True),
    "argmax": Rule(position, out=True, differentiable=False),
    "argmin": Rule(position, out=True, differentiable=False),
}
