"""Rules of functions of each element, and of reductions along axes.

See also: ``tlmem/runtime/computing.py``, whose dtype rules these are.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tlmem.compiler.passes.abstract import UNKNOWN, PlainType, TensorType, kind_of
from tlmem.compiler.passes.shape_rules import NotKnown, Rule
from tlmem.runtime.dtypes import RANK, floating, kind_of_number
from tlmem.runtime.errors import WrongDevice, WrongDtype, WrongShape
from tlmem.runtime.tensors.computing import (
    ARITHMETIC,
    COUNTING,
    FRACTION,
    SAME,
    TRUTH,
    broadcast,
    result_dtype,
)
from tlmem.runtime.tensors.reductions import reduced
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
    raise TypeError(f"{kind.__name__} is no operand of a tensor")


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


def ruled(function: Any, how: str, dtype: str | None) -> str | None:
    """The dtype of a result; that of a truth is known whatever the operands are.

    Raises:
        WrongDtype: the operation is not for this dtype.
    """
    if how is TRUTH:
        return "bool"
    if dtype is None:
        return None
    found = result_dtype(function, how, dtype)
    if function in WHOLE and dtype not in ("bool", "int64"):
        raise WrongDtype(f"{function.__name__} is not for {dtype}")
    return found


WHOLE = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert)

# ---- functions of each element ----


def of_two(function: Any, how: str) -> Rule:
    """The rule of a function of two operands."""

    def infer(left: Any, right: Any) -> TensorType:
        shape, dtype = together(left, right)
        return fresh(shape, ruled(function, how, dtype), left, right)

    return Rule(
        infer,
        out=True,
        elementwise=True,
        differentiable=how is not TRUTH and function is not np.floor_divide,
        has_gradient=function is not np.remainder,
    )


def of_one(function: Any, how: str) -> Rule:
    """The rule of a function of one tensor."""

    def infer(value: Any) -> TensorType:
        found = tensor(value)
        return fresh(found.shape, ruled(function, how, found.dtype), found)

    return Rule(infer, out=True, elementwise=True, differentiable=how is not TRUTH)


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


def along(value: Any, axis: Any, keepdims: Any, of_dtype: Callable[[str], str]) -> TensorType:
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


def counting(dtype: str) -> str:
    """The dtype of a sum."""
    return "int64" if dtype == "bool" else dtype


def itself(dtype: str) -> str:
    """The same dtype."""
    return dtype


def truth(dtype: str) -> str:
    """Of what says yes or no."""
    return "bool"


def fractions(dtype: str) -> str:
    """The dtype, which must have fractions."""
    if dtype != floating(dtype):
        raise WrongDtype(f"float32 or float64 is needed, not {dtype}")
    return dtype


def reduction(of_dtype: Callable[[str], str], of_some: bool = False, **facts: Any) -> Rule:
    """The rule of a reduction; ``of_some``: nothing cannot be reduced."""

    def infer(value: Any, axis: Any = None, keepdims: Any = False) -> TensorType:
        made = along(value, axis, keepdims, of_dtype)
        if of_some and made.shape is not None:
            require_some(value, axis)
        return made

    return Rule(infer, out=True, **facts)


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


def softened(value: Any, axis: Any = -1) -> TensorType:
    found = tensor(value)
    if found.shape is not None and axis is not UNKNOWN and not isinstance(axis, PlainType):
        axes_of(found, axis)
    dtype = None if found.dtype is None else floating(found.dtype)
    return fresh(found.shape, dtype, found)


TWO = {
    "add": (np.add, SAME),
    "subtract": (np.subtract, ARITHMETIC),
    "multiply": (np.multiply, SAME),
    "divide": (np.true_divide, FRACTION),
    "floor_divide": (np.floor_divide, COUNTING),
    "remainder": (np.remainder, COUNTING),
    "power": (np.power, COUNTING),
    "maximum": (np.maximum, SAME),
    "minimum": (np.minimum, SAME),
    "equal": (np.equal, TRUTH),
    "not_equal": (np.not_equal, TRUTH),
    "less": (np.less, TRUTH),
    "less_equal": (np.less_equal, TRUTH),
    "greater": (np.greater, TRUTH),
    "greater_equal": (np.greater_equal, TRUTH),
    "logical_and": (np.logical_and, TRUTH),
    "logical_or": (np.logical_or, TRUTH),
    "logical_xor": (np.logical_xor, TRUTH),
    "bitwise_and": (np.bitwise_and, SAME),
    "bitwise_or": (np.bitwise_or, SAME),
    "bitwise_xor": (np.bitwise_xor, SAME),
}
ONE = {
    "invert": (np.invert, SAME),
    "negative": (np.negative, ARITHMETIC),
    "absolute": (np.absolute, SAME),
    "logical_not": (np.logical_not, TRUTH),
    "square": (np.square, COUNTING),
    "sqrt": (np.sqrt, FRACTION),
    "exp": (np.exp, FRACTION),
    "log": (np.log, FRACTION),
    "sin": (np.sin, FRACTION),
    "cos": (np.cos, FRACTION),
    "tanh": (np.tanh, FRACTION),
    "sigmoid": (np.tanh, FRACTION),
    "relu": (np.maximum, COUNTING),
    "isnan": (np.isnan, TRUTH),
    "isfinite": (np.isfinite, TRUTH),
}
RULES = {
    **{name: of_two(*how) for name, how in TWO.items()},
    **{name: of_one(*how) for name, how in ONE.items()},
    "abs": of_one(np.absolute, SAME),
    "clip": Rule(clip, out=True, elementwise=True),
    "where": Rule(where, out=True),
    "sum": reduction(counting),
    "prod": reduction(counting, has_gradient=False),
    "mean": reduction(floating),
    "max": reduction(itself, of_some=True),
    "min": reduction(itself, of_some=True),
    "any": reduction(truth, differentiable=False),
    "all": reduction(truth, differentiable=False),
    "var": Rule(spread, out=True),
    "std": Rule(spread, out=True),
    "argmax": Rule(position, out=True, differentiable=False),
    "argmin": Rule(position, out=True, differentiable=False),
    "softmax": Rule(softened, out=True),
    "log_softmax": Rule(softened, out=True),
}
