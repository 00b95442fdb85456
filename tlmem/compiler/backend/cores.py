"""Operations that the core computes straight into planned memory: the op that the function itself
would call, with the same bits.

Covers: which op, with which parameters. Does not cover: what NumPy computes (``kernels``), which of
the two is taken (``arrays``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.backend.direct import FRACTIONS, MOST_AXES, axes_of, direct_of, mask_of, named
from tlmem.compiler.backend.kernels import NoKernel, common_dtype
from tlmem.compiler.passes.abstract import PlainType, TensorType
from tlmem.compiler.passes.rules_elements import ALIASES
from tlmem.runtime.tensors.core_ops import row
from tlmem.runtime.tensors.operators import ROWS
from tlmem.runtime.tensors.rows import ALONG, FUNCTION, OF_TWO, REDUCING

PRODUCTS = ("matmul", "dot")
JOINS = {"concat": 0, "stack": 1}
"""Operation -> how many axes the result has more."""
FLOAT32_MOST = 3.4028234663852886e38


@dataclass(frozen=True)
class Core:
    """One call of the core.

    Attributes:
        row: number of the op.
        count: of its operands, the first ones of the operation; 0 when they are those of a list.
        parameters: behind its operands.
        doubtful: whether an operand is a number that the core may not take; it says so.
    """

    row: int
    count: int
    parameters: tuple[Any, ...] = ()
    doubtful: bool = False

    @property
    def joined(self) -> bool:
        """Whether the operands are those of a list."""
        return self.count == 0


def core_of(
    op: ir.Op, given: tuple[Any, ...], options: dict[str, Any], made: TensorType
) -> Core | None:
    """How the core computes an operation into memory that there is; None: it does not.

    Args:
        given, options: abstract values of its operands.
        made: its result, of known shape and dtype.
    """
    if op.op in JOINS:
        return of_join(op.op, given, options)
    if op.op == "where":
        return of_where(given, options)
    tensors = [each for each in given if isinstance(each, TensorType)]
    if made.dtype not in FRACTIONS or not all(is_plain_tensor(each) for each in tensors):
        return None
    known = ROWS.get(ALIASES.get(op.op, op.op))
    operands = OPERANDS.get(known.kind) if known is not None else None
    if known is not None and operands == len(given) and not options:
        return of_numbers(known.number, given, made.dtype)
    if op.op in PRODUCTS and len(tensors) == len(given) == 2 and not options:
        one = op.op == "matmul" or all(len(each.shape or ()) == 1 for each in tensors)
        return of_numbers(row("matmul"), given, made.dtype) if one else None
    if op.op == "var":
        return of_var(given, options)
    if known is None or known.kind not in (REDUCING, ALONG):
        return None
    found = direct_of(op, given, options, made)
    return Core(found[0], 1, found[1]) if found is not None else None


OPERANDS = {FUNCTION: 1, OF_TWO: 2}
"""Kind of an op of each element -> how many it takes."""


def is_plain_tensor(value: Any) -> bool:
    """Whether the core takes a tensor, as far as its shape goes."""
    shape = value.shape if isinstance(value, TensorType) else None
    return shape is not None and len(shape) <= MOST_AXES and 0 not in shape


def of_numbers(number: int, given: tuple[Any, ...], dtype: str | None) -> Core | None:
    """An op on tensors of one dtype and numbers."""
    try:
        if number < 0 or common_dtype(given) != dtype:
            return None
    except NoKernel:
        return None
    doubtful = False
    for each in given:
        if isinstance(each, PlainType):
            doubtful = True
        elif not isinstance(each, TensorType) and not fits(each, dtype):
            return None
    return Core(number, len(given), (), doubtful)


def fits(number: Any, dtype: str | None) -> bool:
    """Whether a number is one of the dtype, as the core asks."""
    try:
        value = float(number)
    except OverflowError:
        return False
    finite = value - value == 0
    return dtype == "float64" or not finite or abs(value) <= FLOAT32_MOST


def of_var(given: tuple[Any, ...], options: dict[str, Any]) -> Core | None:
    """The variance."""
    value, *rest = given
    names, defaults = ("axis", "keepdims", "correction"), (None, False, 1)
    found = named(names, defaults, rest, options)
    if not found or not is_plain_tensor(value) or value.dtype not in FRACTIONS:
        return None
    axes, correction = axes_of(found["axis"], len(value.shape)), found["correction"]
    if axes is None or not isinstance(found["keepdims"], bool) or type(correction) is not int:
        return None
    return Core(row("var"), 1, (mask_of(axes), found["keepdims"], correction))


def of_where(given: tuple[Any, ...], options: dict[str, Any]) -> Core | None:
    """One or the other."""
    if len(given) != 3 or options:
        return None
    condition, *values = given
    if not is_plain_tensor(condition) or condition.dtype != "bool":
        return None
    dtypes = {each.dtype for each in values if isinstance(each, TensorType)}
    if not dtypes <= set(FRACTIONS) or len(dtypes) != 1:
        return None
    if not all(is_plain_tensor(each) for each in values if isinstance(each, TensorType)):
        return None
    found = of_numbers(row("where"), tuple(values), *dtypes)
    return None if found is None else Core(found.row, 3, (), found.doubtful)


def of_join(name: str, given: tuple[Any, ...], options: dict[str, Any]) -> Core | None:
    """Several put together."""
    found = named(("axis",), (0,), list(given[1:]), options)
    parts = given[0] if given else ()
    if not found or not isinstance(parts, tuple) or not all(map(is_plain_tensor, parts)):
        return None
    if not parts or len({each.dtype for each in parts}) != 1 or parts[0].dtype is None:
        return None
    axes = len(parts[0].shape) + JOINS[name]
    axis = found["axis"]
    if type(axis) is not int or not -axes <= axis < axes or axes > MOST_AXES:
        return None
    return Core(row(name), 0, (axis % axes,))
