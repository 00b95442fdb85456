"""From a syntax tree to a function that shares globals and cells with the program's own.

Helpers are free variables by names that no program has; their cells are made here.
"""

from __future__ import annotations

import ast
from types import CellType, CodeType, FunctionType
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.backend.nodes import placed

INNER = "%function"
"""While it is compiled a function has no name of the program: under its own, ``f`` in its body
would be this definition instead of the program's ``f``."""


def arguments(names: list[str], keywords: list[str] | None = None) -> ast.arguments:
    """Positional arguments, then arguments by name only."""
    return ast.arguments(
        posonlyargs=[],
        args=[ast.arg(each) for each in names],
        kwonlyargs=[ast.arg(each) for each in keywords or []],
        kw_defaults=[None for _ in keywords or []],
        defaults=[],
    )


def code_of(
    name: str, given: ast.arguments, body: list[ast.stmt], free: list[str], file: str, line: int
) -> CodeType:
    """The code of a function.

    Args:
        free: names that are cells, not globals.
        file, line: where it says that it stands.
    """
    definition = ast.FunctionDef(INNER, given, body, [])
    around = ast.FunctionDef("%around", arguments(free), [definition], [])
    module = ast.Module([around], [])
    place = ir.Place(line)
    for each in ast.walk(module):
        if isinstance(each, ast.arg):
            each.lineno = each.end_lineno = line
            each.col_offset = each.end_col_offset = 0
    placed(module, place)
    outer = next(c for c in compile(module, file, "exec").co_consts if isinstance(c, CodeType))
    inner: CodeType = next(c for c in outer.co_consts if isinstance(c, CodeType))
    return inner.replace(co_name=name)


def function_of(code: CodeType, like: FunctionType, helpers: dict[str, Any]) -> FunctionType:
    """A function of a code that reads the globals and cells of another one, and helpers.

    A helper that is a cell already is shared.
    """
    known = dict(zip(like.__code__.co_freevars, like.__closure__ or (), strict=True))
    cells = []
    for each in code.co_freevars:
        value = helpers[each] if each in helpers else known[each]
        cells.append(value if isinstance(value, CellType) else CellType(value))
    code = code.replace(co_qualname=like.__qualname__)
    made = FunctionType(code, like.__globals__, like.__name__, None, tuple(cells))
    made.__qualname__ = like.__qualname__
    made.__module__ = like.__module__
    return made
