"""What is refused, by the syntax that it has: its name, and what to write instead.

Every construct that the front does not know is refused too; these are those that have an advice of
their own.
"""

from __future__ import annotations

import ast

OUTSIDE = "do it in a function of its own that is not compiled, and call that"

REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.With: ("'with'", "enter it where the function is called"),
    ast.AsyncWith: ("'async with'", "enter it where the function is called"),
    ast.AsyncFor: ("'async for'", "collect the items first, and pass them as a tuple"),
    ast.Await: ("'await'", "await it first, and pass the result as an argument"),
    ast.Try: ("'try'", "catch the exception where the function is called"),
    ast.TryStar: ("'try'", "catch the exception where the function is called"),
    ast.FunctionDef: ("'def'", "define it outside, and pass what it reads as arguments"),
    ast.AsyncFunctionDef: ("'async def'", "define it outside, and await it before the call"),
    ast.ClassDef: ("'class'", "define it outside of the function"),
    ast.Lambda: ("'lambda'", "write what it computes where it is called, or a function outside"),
    ast.Global: ("'global'", "return the value, and assign it where the function is called"),
    ast.Nonlocal: ("'nonlocal'", "return the value, and assign it where the function is called"),
    ast.Import: ("'import'", "import it at the top of the file"),
    ast.ImportFrom: ("'import'", "import it at the top of the file"),
    ast.Match: ("'match'", "use if and elif"),
    ast.Yield: ("'yield'", "return a tuple, or call the function once for each item"),
    ast.YieldFrom: ("'yield from'", "return a tuple, or call the function once for each item"),
    ast.ListComp: ("a list comprehension", "use a for loop that adds up, concat or stack"),
    ast.SetComp: ("a set comprehension", OUTSIDE),
    ast.DictComp: ("a dict comprehension", OUTSIDE),
    ast.GeneratorExp: ("a generator expression", "use a for loop"),
    ast.NamedExpr: ("':='", "assign in a statement of its own"),
    ast.Starred: ("'*'", "name each value"),
    ast.Dict: ("a dict display", "use a dataclass, or make the dict outside and pass it"),
    ast.Set: ("a set display", "use a tuple"),
}


def refusal(node: ast.AST) -> tuple[str, str]:
    """What to call a construct, and what to write instead."""
    if type(node) in REFUSED:
        return REFUSED[type(node)]
    return f"'{type(node).__name__.lower()}'", OUTSIDE
