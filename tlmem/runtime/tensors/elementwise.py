# mypy: disable-error-code="empty-body"
"""Functions of each element, with broadcasting, into a new tensor or ``out``.

Operands are tensors, Python and NumPy numbers, and NumPy arrays. As in NumPy, dividing by zero and
the like give infinities and NaNs with a warning that ``numpy.errstate`` governs.

Functions without a body do what their rows say (``rows``). Does not cover: how it is done where the
core does not take the operands (``computing``), the operators (``operators``), reductions, products
of matrices (``linalg``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tlmem.runtime.dtypes import floating, kind_of_number, promoted
from tlmem.runtime.errors import WrongDtype
from tlmem.runtime.tensors.computing import (
    COUNTING,
    SAME,
    TRUTH,
    broadcast,
    by_op,
    common_device,
    compute,
    compute_apart,
    constant,
    operand,
)
from tlmem.runtime.tensors.core_ops import (
    apply,
    apply_strictly,
    as_tensor,
    needs,
    require_out_without_gradient,
    row,
)
from tlmem.runtime.tensors.making import destination
from tlmem.runtime.tensors.rows import by_numpy, by_row

if TYPE_CHECKING:
    from tlmem.runtime.tensors.tensor import Tensor

CLIP, WHERE = row("clip"), row("where")

# ---- of two operands ----


@by_row
def add(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left + right``; of two bools, whether one is true."""


@by_row
def subtract(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left - right``."""


@by_row
def multiply(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left * right``; of two bools, whether both are true."""


@by_row
def divide(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left / right``; float32 for integers."""


@by_numpy(np.floor_divide, COUNTING, "floordiv")
def floor_divide(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left // right``, rounded down."""


@by_numpy(np.remainder, COUNTING, "mod", has_gradient=False)
def remainder(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left % right``, with the sign of ``right``."""


@by_row
def power(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left ** right``. ValueError: an integer to a negative integer."""


@by_row
def maximum(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """The greater of each pair; NaN when one is."""


@by_row
def minimum(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """The lesser of each pair; NaN when one is."""


@by_numpy(np.equal, TRUTH, "eq")
def equal(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left == right``."""


@by_numpy(np.not_equal, TRUTH, "ne")
def not_equal(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left != right``."""


@by_numpy(np.less, TRUTH, "lt")
def less(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left < right``."""


@by_numpy(np.less_equal, TRUTH, "le")
def less_equal(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left <= right``."""


@by_numpy(np.greater, TRUTH, "gt")
def greater(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left > right``."""


@by_numpy(np.greater_equal, TRUTH, "ge")
def greater_equal(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left >= right``."""


@by_numpy(np.logical_and, TRUTH)
def logical_and(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """Whether both are true; what is not 0 is true."""


@by_numpy(np.logical_or, TRUTH)
def logical_or(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """Whether one is true at least."""


@by_numpy(np.logical_xor, TRUTH)
def logical_xor(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """Whether exactly one is true."""


@by_numpy(np.bitwise_and, SAME, "and")
def bitwise_and(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left & right``, of bools or integers."""


@by_numpy(np.bitwise_or, SAME, "or")
def bitwise_or(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left | right``, of bools or integers."""


@by_numpy(np.bitwise_xor, SAME, "xor")
def bitwise_xor(left: Any, right: Any, out: Tensor | None = None) -> Tensor:
    """``left ^ right``, of bools or integers."""


# ---- of one operand ----


@by_numpy(np.invert, SAME, "invert")
def invert(value: Tensor, out: Tensor | None = None) -> Tensor:
    """``~value``, of bools or integers."""


@by_row
def negative(value: Tensor, out: Tensor | None = None) -> Tensor:
    """``-value``."""


@by_row
def absolute(value: Tensor, out: Tensor | None = None) -> Tensor:
    """``abs(value)``."""


@by_numpy(np.logical_not, TRUTH)
def logical_not(value: Tensor, out: Tensor | None = None) -> Tensor:
    """Whether it is 0 or False."""


@by_row
def square(value: Tensor, out: Tensor | None = None) -> Tensor:
    """``value * value``."""


@by_row
def sqrt(value: Tensor, out: Tensor | None = None) -> Tensor:
    """The square root; NaN below 0."""


@by_row
def exp(value: Tensor, out: Tensor | None = None) -> Tensor:
    """e to the power of each element."""


@by_row
def log(value: Tensor, out: Tensor | None = None) -> Tensor:
    """The natural logarithm; NaN below 0."""


@by_row
def sin(value: Tensor, out: Tensor | None = None) -> Tensor:
    """The sine of an angle in radians."""


@by_row
def cos(value: Tensor, out: Tensor | None = None) -> Tensor:
    """The cosine of an angle in radians."""


@by_row
def tanh(value: Tensor, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent."""


@by_numpy(np.isnan, TRUTH)
def isnan(value: Tensor, out: Tensor | None = None) -> Tensor:
    """Whether each element is not a number."""


@by_numpy(np.isfinite, TRUTH)
def isfinite(value: Tensor, out: Tensor | None = None) -> Tensor:
    """Whether each element is neither infinite nor NaN."""


@by_row
def relu(value: Tensor, out: Tensor | None = None) -> Tensor:
    """Each element, or 0 when it is negative."""


@by_row
def sigmoid(value: Tensor, out: Tensor | None = None) -> Tensor:
    """``1 / (1 + exp(-value))``, without overflow for any value."""


@by_row
def softplus(value: Tensor, out: Tensor | None = None) -> Tensor:
    """``log(1 + exp(value))``, without overflow for any value."""


# ---- of three ----


@by_row
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


@by_row
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
    dtype = promoted(*(known or kind_of_number(each) for each, known in pairs))
    data = [each if known else constant(each, dtype) for each, known in pairs]
    return data, dtype, broadcast(*(getattr(each, "shape", ()) for each in data))
