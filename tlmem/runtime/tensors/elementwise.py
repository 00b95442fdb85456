"""Functions of each element, with broadcasting, into a new tensor or ``out``.

Operands are tensors, Python and NumPy numbers, and NumPy arrays. As in NumPy, dividing by zero and
the like give infinities and NaNs with a warning that ``numpy.errstate`` governs.

Does not cover: how it is done (``computing``), the operators (``operators``), reductions, products
of matrices (``linalg``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.runtime.dtypes import floating, kind_of_number, promoted
from tlmem.runtime.errors import WrongDtype
from tlmem.runtime.tensors.computing import (
    ARITHMETIC,
    COUNTING,
    FRACTION,
    SAME,
    TRUTH,
    binary,
    broadcast,
    by_op,
    common_device,
    compute,
    compute_apart,
    constant,
    operand,
    unary,
)
from tlmem.runtime.tensors.core_ops import (
    LOST,
    apply,
    apply_strictly,
    as_tensor,
    needs,
    require_out_without_gradient,
    row,
)
from tlmem.runtime.tensors.making import destination

if TYPE_CHECKING:
    from tlmem.runtime.tensors.tensor import Tensor

ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER = map(
    row, ("add", "subtract", "multiply", "divide", "power")
)
MAXIMUM, MINIMUM, CLIP, WHERE = map(row, ("maximum", "minimum", "clip", "where"))
NEGATIVE, ABSOLUTE, SQUARE, SQRT = map(row, ("negative", "absolute", "square", "sqrt"))
EXP, LOG, SIN, COS, TANH = map(row, ("exp", "log", "sin", "cos", "tanh"))
RELU, SIGMOID = map(row, ("relu", "sigmoid"))

# ---- of two operands ----


def add(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left + right``; of two bools, whether one is true."""
    if out is None and (made := apply(ADD, 2, left, right)) is not NotImplemented:
        return made
    return binary(np.add, SAME, left, right, out, ADD)


def subtract(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left - right``."""
    if out is None and (made := apply(SUBTRACT, 2, left, right)) is not NotImplemented:
        return made
    return binary(np.subtract, ARITHMETIC, left, right, out, SUBTRACT)


def multiply(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left * right``; of two bools, whether both are true."""
    if out is None and (made := apply(MULTIPLY, 2, left, right)) is not NotImplemented:
        return made
    return binary(np.multiply, SAME, left, right, out, MULTIPLY)


def divide(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left / right``; float32 for integers."""
    if out is None and (made := apply(DIVIDE, 2, left, right)) is not NotImplemented:
        return made
    return binary(np.true_divide, FRACTION, left, right, out, DIVIDE)


def floor_divide(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left // right``, rounded down."""
    return binary(np.floor_divide, COUNTING, left, right, out)


def remainder(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left % right``, with the sign of ``right``."""
    return binary(np.remainder, COUNTING, left, right, out, LOST)


def power(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left ** right``. ValueError: an integer to a negative integer."""
    if out is None and (made := apply(POWER, 2, left, right)) is not NotImplemented:
        return made
    return binary(np.power, COUNTING, left, right, out, POWER)


def maximum(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """The greater of each pair; NaN when one is."""
    if out is None and (made := apply(MAXIMUM, 2, left, right)) is not NotImplemented:
        return made
    return binary(np.maximum, SAME, left, right, out, MAXIMUM)


def minimum(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """The lesser of each pair; NaN when one is."""
    if out is None and (made := apply(MINIMUM, 2, left, right)) is not NotImplemented:
        return made
    return binary(np.minimum, SAME, left, right, out, MINIMUM)


def equal(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left == right``."""
    return binary(np.equal, TRUTH, left, right, out)


def not_equal(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left != right``."""
    return binary(np.not_equal, TRUTH, left, right, out)


def less(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left < right``."""
    return binary(np.less, TRUTH, left, right, out)


def less_equal(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left <= right``."""
    return binary(np.less_equal, TRUTH, left, right, out)


def greater(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left > right``."""
    return binary(np.greater, TRUTH, left, right, out)


def greater_equal(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left >= right``."""
    return binary(np.greater_equal, TRUTH, left, right, out)


def logical_and(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """Whether both are true; what is not 0 is true."""
    return binary(np.logical_and, TRUTH, left, right, out)


def logical_or(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """Whether one is true at least."""
    return binary(np.logical_or, TRUTH, left, right, out)


def logical_xor(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """Whether exactly one is true."""
    return binary(np.logical_xor, TRUTH, left, right, out)


def bitwise_and(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left & right``, of bools or int64."""
    return binary(np.bitwise_and, SAME, left, right, out)


def bitwise_or(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left | right``, of bools or int64."""
    return binary(np.bitwise_or, SAME, left, right, out)


def bitwise_xor(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left ^ right``, of bools or int64."""
    return binary(np.bitwise_xor, SAME, left, right, out)


# ---- of one operand ----


def invert(value: Tensor, out: Tensor | None = None) -> Tensor:
    """``~value``, of bool or int64."""
    return unary(np.invert, SAME, value, out)


def negative(value: Tensor, out: Tensor | None = None) -> Tensor:
    """``-value``."""
    if out is None and (made := apply(NEGATIVE, 1, value)) is not NotImplemented:
        return made
    return unary(np.negative, ARITHMETIC, value, out, NEGATIVE)


def absolute(value: Tensor, out: Tensor | None = None) -> Tensor:
    """``abs(value)``."""
    if out is None and (made := apply(ABSOLUTE, 1, value)) is not NotImplemented:
        return made
    return unary(np.absolute, SAME, value, out, ABSOLUTE)


def logical_not(value: Tensor, out: Tensor | None = None) -> Tensor:
    """Whether it is 0 or False."""
    return unary(np.logical_not, TRUTH, value, out)


def square(value: Tensor, out: Tensor | None = None) -> Tensor:
    """``value * value``."""
    if out is None and (made := apply(SQUARE, 1, value)) is not NotImplemented:
        return made
    return unary(np.square, COUNTING, value, out, SQUARE)


def sqrt(value: Tensor, out: Tensor | None = None) -> Tensor:
    """The square root; NaN below 0."""
    if out is None and (made := apply(SQRT, 1, value)) is not NotImplemented:
        return made
    return unary(np.sqrt, FRACTION, value, out, SQRT)


def exp(value: Tensor, out: Tensor | None = None) -> Tensor:
    """e to the power of each element."""
    if out is None and (made := apply(EXP, 1, value)) is not NotImplemented:
        return made
    return unary(np.exp, FRACTION, value, out, EXP)


def log(value: Tensor, out: Tensor | None = None) -> Tensor:
    """The natural logarithm; NaN below 0."""
    if out is None and (made := apply(LOG, 1, value)) is not NotImplemented:
        return made
    return unary(np.log, FRACTION, value, out, LOG)


def sin(value: Tensor, out: Tensor | None = None) -> Tensor:
    """The sine of an angle in radians."""
    if out is None and (made := apply(SIN, 1, value)) is not NotImplemented:
        return made
    return unary(np.sin, FRACTION, value, out, SIN)


def cos(value: Tensor, out: Tensor | None = None) -> Tensor:
    """The cosine of an angle in radians."""
    if out is None and (made := apply(COS, 1, value)) is not NotImplemented:
        return made
    return unary(np.cos, FRACTION, value, out, COS)


def tanh(value: Tensor, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent."""
    if out is None and (made := apply(TANH, 1, value)) is not NotImplemented:
        return made
    return unary(np.tanh, FRACTION, value, out, TANH)


def isnan(value: Tensor, out: Tensor | None = None) -> Tensor:
    """Whether each element is not a number."""
    return unary(np.isnan, TRUTH, value, out)


def isfinite(value: Tensor, out: Tensor | None = None) -> Tensor:
    """Whether each element is neither infinite nor NaN."""
    return unary(np.isfinite, TRUTH, value, out)


def relu(value: Tensor, out: Tensor | None = None) -> Tensor:
    """Each element, or 0 when it is negative."""
    if out is None and (made := apply(RELU, 1, value)) is not NotImplemented:
        return made
    made = by_op(RELU, "relu", out, (value,))
    if made is not NotImplemented:
        return made
    return binary(np.maximum, COUNTING, value, 0, out)


def sigmoid(value: Tensor, out: Tensor | None = None) -> Tensor:
    """``1 / (1 + exp(-value))``, without overflow for any value; needs no memory but the result."""
    if out is None and (made := apply(SIGMOID, 1, value)) is not NotImplemented:
        return made
    made = by_op(SIGMOID, "sigmoid", out, (value,))
    if made is not NotImplemented:
        return made
    result = binary(np.multiply, FRACTION, value, 0.5, out)
    data, half = result._data(), constant(0.5, result.dtype)
    np.tanh(data, out=data)
    np.multiply(data, half, out=data)
    np.add(data, half, out=data)
    return result


# ---- of three ----


def clip(value: Any, low: Any, high: Any, out: Tensor | None = None) -> Tensor:
    """Each element, but not below ``low`` and not above ``high``; None is no limit.

    Raises:
        ValueError: there is no limit at all.
    """
    bounds = [each for each in (low, high) if each is not None]
    if not bounds:
        raise ValueError("clip needs a lower limit, an upper one, or both")
    made = clip_by_op(value, low, high, out)
    if made is not NotImplemented:
        return made
    data, dtype, shape = together("clip", value, *bounds)
    result = destination(out, shape, dtype, common_device(value, *bounds))
    functions = [f for f, limit in ((np.maximum, low), (np.minimum, high)) if limit is not None]

    def clip_into(*limits: Any, out: Any) -> None:
        source = data[0]
        for function, limit in zip(functions, limits, strict=True):
            source = function(source, limit, out=out)

    return compute_apart(clip_into, result, out, data[1:], *data[1:])


def clip_by_op(value: Any, low: Any, high: Any, out: Any) -> Any:
    """By the op for limits that are numbers, else by those for the greater and the lesser."""
    limits = [each for each in (low, high) if each is not None]
    if all(isinstance(each, int | float) for each in limits):
        least = float("-inf") if low is None else float(low)
        most = float("inf") if high is None else float(high)
        return by_op(CLIP, "clip", out, (value,), least, most)
    if out is None and needs(value, *limits):
        above = value if low is None else maximum(value, low)
        return above if high is None else minimum(above, high)
    require_out_without_gradient("clip", out, value, *limits)
    return NotImplemented


def where(condition: Any, left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left`` where the condition is true, else ``right``.

    Raises:
        WrongDtype: the condition is not bool.
    """
    truth, found = operand(condition, "where")
    if found != "bool":
        raise WrongDtype(f"where needs a bool tensor as condition, not {found or condition!r}")
    made = where_by_op(condition, left, right, out)
    if made is not NotImplemented:
        return made
    (one, other), dtype, shape = together("where", left, right)
    shape = broadcast(truth.shape, shape)
    result = destination(out, shape, dtype, common_device(condition, left, right))

    def choose_into(out: Any) -> None:
        if any(np.may_share_memory(out, each) for each in (truth, one) if np.ndim(each)):
            np.copyto(out, np.where(truth, one, other), casting="same_kind")
            return
        np.copyto(out, other, casting="same_kind")
        np.copyto(out, one, where=truth, casting="same_kind")

    return compute(choose_into, result, out)


def where_by_op(condition: Any, left: Any, right: Any, out: Any) -> Any:
    """By the op, to which the two come with one dtype."""
    if out is not None:
        return by_op(WHERE, "where", out, (condition, left, right))
    made = apply(WHERE, 3, condition, left, right)
    if made is NotImplemented and needs(left, right):
        _, dtype, _ = together("where", left, right)
        truth = as_tensor(condition, "bool")
        one, other = as_tensor(left, floating(dtype)), as_tensor(right, floating(dtype))
        made = apply_strictly(WHERE, 3, truth, one, other)
    return made


def together(doing: str, *values: Any) -> tuple[list[Any], str, tuple[int, ...]]:
    """What NumPy is given for several operands, their common dtype and shape."""
    pairs = [operand(value, doing) for value in values]
    dtype = "bool"
    for each, known in pairs:
        dtype = promoted(dtype, known or kind_of_number(each))
    data = [each if known else constant(each, dtype) for each, known in pairs]
    return data, dtype, broadcast(*(getattr(each, "shape", ()) for each in data))
