"""Syntax trees of Python for operands, operators and calls, each at its place in the program."""

from __future__ import annotations

import ast
from typing import Any, TypeVar

from tlmem.compiler import ir
from tlmem.compiler.front.names import OPERATORS

BINARY: dict[str, type[ast.operator]] = {
    name: kind for kind, name in OPERATORS.items() if issubclass(kind, ast.operator)
}
UNARY: dict[str, type[ast.unaryop]] = {
    name: kind for kind, name in OPERATORS.items() if issubclass(kind, ast.unaryop)
}
COMPARING: dict[str, type[ast.cmpop]] = {
    name: kind for kind, name in OPERATORS.items() if issubclass(kind, ast.cmpop)
}

PLACED = (ast.expr, ast.stmt, ast.keyword, ast.excepthandler)
Node = TypeVar("Node", bound=ast.AST)


def placed(node: Node, place: ir.Place) -> Node:
    """The node, with the place for itself and for everything in it that has none."""
    for each in ast.walk(node):
        if isinstance(each, PLACED) and not hasattr(each, "lineno"):
            each.lineno = max(place.line, 1)
            each.col_offset = place.column
            each.end_lineno = max(place.end_line, place.line, 1)
            each.end_col_offset = max(place.end_column, place.column)
    return node


def name(identifier: str) -> ast.Name:
    """A name that is read."""
    return ast.Name(identifier, ast.Load())


def stored(identifier: str) -> ast.Name:
    """A name that gets a value."""
    return ast.Name(identifier, ast.Store())


def path(text: str) -> ast.expr:
    """``model.head.w``."""
    first, *rest = text.split(".")
    made: ast.expr = name(first)
    for each in rest:
        made = ast.Attribute(made, each, ast.Load())
    return made


def call(function: ast.expr | str, *given: ast.expr, **options: ast.expr) -> ast.Call:
    """A call."""
    called = name(function) if isinstance(function, str) else function
    return ast.Call(called, list(given), [ast.keyword(k, v) for k, v in options.items()])


def assign(target: str, value: ast.expr) -> ast.Assign:
    """``target = value``."""
    return ast.Assign([stored(target)], value)


def constant(value: Any) -> ast.expr:
    """A constant, a slice of constants or a tuple of such."""
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return ast.Slice(*(None if each is None else ast.Constant(each) for each in parts))
    if isinstance(value, tuple):
        return ast.Tuple([constant(each) for each in value], ast.Load())
    return ast.Constant(value)


def operator(op: str, given: list[ast.expr]) -> ast.expr:
    """An operator on its operands."""
    if op == "getitem":
        return ast.Subscript(given[0], given[1], ast.Load())
    if op in UNARY:
        return ast.UnaryOp(UNARY[op](), given[0])
    if op in COMPARING:
        return ast.Compare(given[0], [COMPARING[op]()], [given[1]])
    return ast.BinOp(given[0], BINARY[op](), given[1])
