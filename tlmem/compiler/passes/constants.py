"""What is known of plain Python expressions before they are computed: numbers of shapes, mostly.

Does not cover: operations on tensors (``shape_rules``).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from math import prod
from typing import Any

from tlmem.compiler.passes.abstract import (
    UNKNOWN,
    PlainType,
    StructType,
    TensorType,
    abstract,
    is_known,
    joined,
    kind_of,
)
from tlmem.runtime.dtypes import ITEM_BYTES

Lookup = Callable[[str], Any]
"""The abstract value of a name, or of a path with dots."""

OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
CALLS: dict[str, Callable[..., Any]] = {
    **{"abs": abs, "bool": bool, "float": float, "int": int, "len": len, "max": max, "min": min},
    **{"round": round, "str": str, "sum": sum, "tuple": tuple, "%slice": slice},
}
KINDS = {"float": float, "int": int, "bool": bool, "str": str, "len": int, "isinstance": bool}
MOST_DIGITS = 10**30
"""Beyond this, numbers are not computed beforehand."""


def value_of(node: ast.expr, local: Lookup, outside: Lookup) -> Any:
    """The abstract value of an expression; ``UNKNOWN`` also for what Python will refuse.

    Args:
        local: of a variable of the function; ``UNKNOWN`` for one it has not.
        outside: of a name from outside.
    """
    return _Reader(local, outside).value(node)


def attribute(value: Any, name: str) -> Any:
    """``value.name``."""
    if isinstance(value, StructType):
        return value.field(name)
    if not isinstance(value, TensorType):
        return UNKNOWN
    if name == "device":
        return PlainType(str)
    if name == "dtype":
        return PlainType(str) if value.dtype is None else value.dtype
    if name == "requires_grad":
        return PlainType(bool) if value.grad is None else value.grad
    if value.shape is None:
        return PlainType(int) if name in ("ndim", "size", "nbytes", "itemsize") else UNKNOWN
    known = {"shape": value.shape, "ndim": len(value.shape), "size": prod(value.shape)}
    if value.dtype is not None:
        known |= {"itemsize": ITEM_BYTES[value.dtype], "nbytes": value.nbytes}
    return known.get(name, UNKNOWN)


class _Reader:
    """Reads one expression."""

    def __init__(self, local: Lookup, outside: Lookup) -> None:
        self.local, self.outside = local, outside

    def value(self, node: ast.expr | None) -> Any:
        if node is None:
            return None
        read = getattr(self, f"_{type(node).__name__.lower()}", None)
        return UNKNOWN if read is None else read(node)

    def _constant(self, node: ast.Constant) -> Any:
        return abstract(node.value)

    def _name(self, node: ast.Name) -> Any:
        found = self.local(node.id)
        return self.outside(node.id) if found is UNKNOWN else found

    def _attribute(self, node: ast.Attribute) -> Any:
        found = attribute(self.value(node.value), node.attr)
        path = dotted(node)
        return self.outside(path) if found is UNKNOWN and path else found

    def _tuple(self, node: ast.Tuple) -> Any:
        return tuple(map(self.value, node.elts))

    def _subscript(self, node: ast.Subscript) -> Any:
        values, key = self.value(node.value), self.value(node.slice)
        if isinstance(values, tuple) and type(key) in (int, slice):
            return applied(operator.getitem, values, key)
        kinds = {kind_of(each) for each in values} if isinstance(values, tuple) else {None}
        return PlainType(int) if kinds == {int} and kind_of(key) is int else UNKNOWN

    def _slice(self, node: ast.Slice) -> Any:
        bounds = [self.value(each) for each in (node.lower, node.upper, node.step)]
        return slice(*bounds) if all(map(is_known, bounds)) else UNKNOWN

    def _binop(self, node: ast.BinOp) -> Any:
        return self.operation(node.op, node.left, node.right)

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        return self.operation(node.op, node.operand)

    def _compare(self, node: ast.Compare) -> Any:
        if len(node.ops) > 1:
            return PlainType(bool)
        return self.operation(node.ops[0], node.left, node.comparators[0])

    def _boolop(self, node: ast.BoolOp) -> Any:
        first, *rest = [self.value(each) for each in node.values]
        for each in rest:
            first = joined(first, each)
        return first

    def _ifexp(self, node: ast.IfExp) -> Any:
        return joined(self.value(node.body), self.value(node.orelse))

    def _joinedstr(self, node: ast.JoinedStr) -> Any:
        return PlainType(str)

    def _call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        values = [self.value(each) for each in node.args]
        if name in CALLS and not node.keywords:
            found = applied(CALLS[name], *values)
            if found is not UNKNOWN:
                return found
        return PlainType(KINDS[name]) if name in KINDS else UNKNOWN

    def operation(self, op: ast.AST, *nodes: ast.expr) -> Any:
        values = [self.value(each) for each in nodes]
        function = OPERATORS.get(type(op))
        found = applied(function, *values) if function else UNKNOWN
        if found is not UNKNOWN:
            return found
        kinds = {kind_of(each) for each in values}
        if isinstance(op, ast.cmpop | ast.Not) and None not in kinds:
            return PlainType(bool)
        if kinds == {int} and not isinstance(op, ast.Div | ast.Pow):
            return PlainType(int)
        if kinds <= {int, float} and float in kinds and not isinstance(op, ast.Pow):
            return PlainType(float)
        return UNKNOWN


def applied(function: Callable[..., Any], *values: Any) -> Any:
    """What a function gives for constants; ``UNKNOWN`` for anything else."""
    if not all(map(is_known, values)):
        if function is len and isinstance(values[0], tuple):
            return len(values[0])
        if function is operator.getitem and is_known(values[1]):
            return part(values[0], values[1])
        return UNKNOWN
    if any(isinstance(each, str) for each in values) and function is operator.mul:
        return UNKNOWN  # it could be long
    try:
        found = function(*values)
    except Exception:  # the program will find out itself
        return UNKNOWN
    if isinstance(found, int) and abs(found) > MOST_DIGITS:
        return PlainType(int)
    return abstract(found)


def part(values: Any, key: Any) -> Any:
    """An item of a tuple, or some of them."""
    try:
        return values[key]
    except (IndexError, TypeError):
        return UNKNOWN


def dotted(node: ast.expr) -> str:
    """``a.b.c`` of a name with attributes; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""
