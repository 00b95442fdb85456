"""Between operands and syntax trees: places, names in expressions, operands as expressions."""

from __future__ import annotations

import ast

from tlmem.compiler import ir
from tlmem.compiler.front.names import Names

SLICE = "%slice"
"""The builtin, by a name that no program has."""


def place_of(node: ast.AST) -> ir.Place:
    """Where a node stands."""
    return ir.Place(
        getattr(node, "lineno", 0),
        getattr(node, "col_offset", 0),
        getattr(node, "end_lineno", 0) or 0,
        getattr(node, "end_col_offset", 0) or 0,
    )


def read_names(node: ast.expr, names: Names) -> tuple[str, ...]:
    """The locals and temporaries in an expression, each once, in order."""
    found = [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)]
    return tuple(dict.fromkeys(n for n in found if n in names.locals or is_numbered(n)))


def is_numbered(name: str) -> bool:
    """Whether a name is a temporary: ``%1``."""
    return name.startswith("%") and name[1:].isdigit()


def as_tree(operand: ir.Operand, at: ast.AST) -> ast.expr:
    """An operand as an expression that stands where ``at`` does."""
    made: ast.expr
    if isinstance(operand, ir.Var):
        made = ast.Name(operand.name, ast.Load())
    elif isinstance(operand, ir.Captured):
        first, *rest = operand.path.split(".")
        made = ast.copy_location(ast.Name(first, ast.Load()), at)
        for name in rest:
            made = ast.copy_location(ast.Attribute(made, name, ast.Load()), at)
    elif isinstance(operand, ir.Group):
        kind = ast.List if operand.kind == "list" else ast.Tuple
        made = kind([as_tree(item, at) for item in operand.items], ast.Load())
    elif isinstance(operand.value, slice):
        bounds = (operand.value.start, operand.value.stop, operand.value.step)
        parts = [
            None if each is None else ast.copy_location(ast.Constant(each), at) for each in bounds
        ]
        made = ast.Slice(*parts)
    else:
        made = ast.Constant(operand.value)
    return ast.copy_location(made, at)


def sliced(bounds: list[ir.Operand], at: ast.AST) -> ast.expr:
    """``slice(a, b, c)`` of operands, whatever the program calls ``slice``."""
    call = ast.Call(ast.Name(SLICE, ast.Load()), [as_tree(each, at) for each in bounds], [])
    return ast.fix_missing_locations(ast.copy_location(call, at))
