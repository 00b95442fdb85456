"""Shape and dtype of the result of each operation, and how it comes to its memory.

Covers: finding the rule of an operation by its public name. Does not cover: the rules themselves
(``rules_elements``, ``rules_products``, ``rules_shapes``, ``rules_making``).

A rule takes what the operation takes, with abstract values for real ones, and gives the abstract
result. It raises what the operation raises when the operands do not fit, and ``NotKnown`` when the
answer hangs on something that is not known before the function runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tlmem.compiler.passes.abstract import (
    UNKNOWN,
    PlainType,
    TensorType,
    abstract,
    is_known,
    kind_of,
)
from tlmem.runtime.dtypes import WHOLE
from tlmem.runtime.errors import NotDifferentiable

# How the result comes to its memory.
FRESH = "fresh"  # memory of its own
VIEW = "view"  # that of the first operand
EITHER = "either"  # a view where the first operand lies so that it can be one, else its own
SAME = "same"  # the first operand itself
PLAIN = "plain"  # it is not a tensor


class NotKnown(Exception):
    """The result hangs on what is known only when the function runs."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One operation.

    Attributes:
        infer: its rule.
        memory: how the result comes to its memory.
        out: whether it takes ``out=``.
        elementwise: whether ``out`` may be an operand at no cost.
        differentiable: whether its result needs a gradient when an operand does.
        has_gradient: whether it can be recorded; else an operand that needs one is refused.
        keeps: whether somebody may hold the first operand afterwards.
    """

    infer: Callable[..., Any]
    memory: str = FRESH
    out: bool = False
    elementwise: bool = False
    differentiable: bool = True
    has_gradient: bool = True
    keeps: bool = False


@cache
def rules() -> dict[str, Rule]:
    """All rules by the public name of the operation."""
    from tlmem.compiler.passes import rules_elements, rules_making, rules_products, rules_shapes

    parts = (rules_elements, rules_making, rules_products, rules_shapes)
    return {name: rule for part in parts for name, rule in part.RULES.items()}


callees: dict[str, Rule] = {}
"""Rules of compiled functions that are like operations; ``passes.callees`` puts them here."""


def rule_of(op: str) -> Rule | None:
    """The rule of an operation; None for one that nothing is known of."""
    return rules().get(op) or callees.get(op)


def result_of(op: str, operands: tuple[Any, ...], options: dict[str, Any] | None = None) -> Any:
    """The abstract result of an operation.

    Args:
        op: its public name, such as ``add``; ``getitem`` for brackets.
        operands: abstract values, the tensor of a method first.
        options: those given by name; ``out`` among them is the result, if it fits.

    Returns:
        An abstract value; what is not known of it is left open, ``UNKNOWN`` at worst.

    Raises:
        WrongShape, WrongDtype, WrongDevice, IndexError, TypeError, ValueError: as the operation
            itself will, whatever the elements of the tensors are.
    """
    rule, options = rule_of(op), dict(options or {})
    if not any(map(has_tensor, operands)):
        if any(map(is_open, operands)) or any(map(is_open, options.values())):
            return UNKNOWN
        if rule is None or rule.memory != FRESH or op in BY_PYTHON:
            return of_python(op, operands, options)
    if rule is None:
        return UNKNOWN
    out = options.pop("out", None)
    try:
        made = rule.infer(*operands, **options)
    except NotKnown:
        made = UNKNOWN if rule.memory == PLAIN else TensorType()
    if not isinstance(made, TensorType):
        return made
    made = replace(made, grad=needs_gradient(rule, (*operands, *options.values()), made))
    return made if out is None else fitted(made, out)


def needs_gradient(rule: Rule, values: tuple[Any, ...], made: TensorType) -> bool | None:
    """Whether a result needs a gradient: when an operand does, and it is of a floating dtype."""
    if made.grad or not rule.differentiable or made.dtype in WHOLE:
        return bool(made.grad)
    known = [each.grad for each in tensors_in(values)]
    if any(known):
        if not rule.has_gradient:
            raise NotDifferentiable("it needs a gradient, and there is no rule for this")
        return True if made.dtype is not None else None
    return None if None in known or any(map(is_open, values)) else False


def fitted(made: TensorType, out: Any) -> Any:
    """The destination, which is the result when it fits."""
    return replace(out, grad=None) if isinstance(out, TensorType) else UNKNOWN


def tensors_in(values: Any) -> list[TensorType]:
    """The tensors among values, also inside tuples."""
    found = []
    for value in values:
        if isinstance(value, TensorType):
            found.append(value)
        elif isinstance(value, tuple):
            found += tensors_in(value)
    return found


def has_tensor(value: Any) -> bool:
    """Whether it is a tensor, or has one in it."""
    return bool(tensors_in((value,)))


def is_open(value: Any) -> bool:
    """Whether it may be a tensor, or have one in it, without being known as one."""
    return value is UNKNOWN or (isinstance(value, tuple) and any(map(is_open, value)))


# ---- plain values ----

BY_PYTHON: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "negative": operator.neg,
    "absolute": abs,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "getitem": operator.getitem,
}
"""Operators that the front reads as operations, also between numbers."""


def of_python(op: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What Python gives for constants; ``UNKNOWN`` for anything else, also for what it refuses."""
    function = BY_PYTHON.get(op)
    if function is None or options:
        return UNKNOWN
    if op == "getitem" and isinstance(operands[0], tuple) and is_known(operands[1]):
        return part_of(operands[0], operands[1])
    if not all(map(is_known, operands)):
        return kind_of_python(op, [kind_of(each) for each in operands])
    try:
        return abstract(function(*operands))
    except Exception:  # as the program will find out itself
        return UNKNOWN


COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def kind_of_python(op: str, kinds: list[type | None]) -> Any:
    """What is known of a result when only the classes of the numbers are."""
    if not set(kinds) <= {bool, int, float} or op in ("power", "getitem"):
        return UNKNOWN
    if op in COMPARISONS:
        return PlainType(bool)
    if float in kinds or op == "divide":
        return PlainType(float)
    return PlainType(int)


def part_of(values: tuple[Any, ...], key: Any) -> Any:
    """An item of a tuple."""
    try:
        return values[key]
    except (TypeError, IndexError):
        return UNKNOWN
