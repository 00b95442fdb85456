"""Operations of the core that are called without the function of Python around them.

What ``tlmem.sum(x, 1)`` finds out at each call (is it a tensor, which axes, which op) is known when
the function is compiled. The op is the same, and so are its result and its record.
"""

from __future__ import annotations

from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.passes.abstract import TensorType, is_known
from tlmem.runtime.tensors.core_ops import row
from tlmem.runtime.tensors.operators import ROWS
from tlmem.runtime.tensors.rows import ALONG, FUNCTION, REDUCING

FRACTIONS = ("float32", "float64")
MOST_AXES = 8
Direct = tuple[Any, tuple[Any, ...]]
"""Number of the op, and parameters behind its one operand."""


def direct_of(
    op: ir.Op, given: tuple[Any, ...], options: dict[str, Any], made: Any
) -> Direct | None:
    """How an operation on one tensor is called in the core; None when that is not known.

    Args:
        given, options: abstract values of its operands.
        made: its result.
    """
    if op.form == "operator" or not given or not isinstance(made, TensorType):
        return None
    value, *rest = given
    if not isinstance(value, TensorType) or value.dtype not in FRACTIONS or value.shape is None:
        return None
    if len(value.shape) > MOST_AXES or 0 in value.shape:
        return None
    if op.op == "reshape" and not options and made.shape and len(made.shape) <= MOST_AXES:
        return row("reshape"), (len(made.shape), *made.shape)
    known = ROWS.get(op.op)
    if known is None or known.number < 0:
        return None
    if known.kind == FUNCTION and not rest and not options:
        return known.number, ()
    if known.kind == REDUCING:
        found = named(("axis", "keepdims"), (None, False), rest, options)
        axes = axes_of(found["axis"], len(value.shape)) if found else None
        if not found or axes is None or not isinstance(found["keepdims"], bool):
            return None
        return known.number, (mask_of(axes), found["keepdims"])
    if known.kind == ALONG:
        found = named(("axis",), (-1,), rest, options)
        axes = axes_of(found["axis"], len(value.shape)) if found else None
        return (known.number, tuple(axes)) if axes and len(axes) == 1 else None
    return None


def mask_of(axes: set[int]) -> int:
    """Axes as the bits of a number."""
    mask = 0
    for each in axes:
        mask |= 1 << each
    return mask


def named(
    names: tuple[str, ...], defaults: tuple[Any, ...], given: list[Any], options: dict[str, Any]
) -> dict[str, Any] | None:
    """Arguments by name; None when they are not those."""
    if len(given) > len(names) or not set(options) <= set(names[len(given) :]):
        return None
    return {**dict(zip(names, defaults, strict=True)), **dict(zip(names, given)), **options}  # noqa: B905


def axes_of(axis: Any, count: int) -> set[int] | None:
    """The axes that are meant; None when they are not known to be right."""
    if not is_known(axis):
        return None
    axes = tuple(range(count)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not all(type(each) is int and -count <= each < count for each in axes):
        return None
    found = {each % count for each in axes}
    return found if len(found) == len(axes) else None
