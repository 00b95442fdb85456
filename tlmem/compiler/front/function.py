"""A whole function of Python becomes a function of the IR: arguments, body, numbers.

Covers: the parameters; temporaries numbered in the order in which they get their values. Does not
cover: statements (``statements``), expressions (``expressions``).
"""

from __future__ import annotations

import ast
import copy
import inspect
from dataclasses import fields, replace
from types import FunctionType
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.errors import NotCompilable
from tlmem.compiler.front.names import Names
from tlmem.compiler.front.plainness import Plainness
from tlmem.compiler.front.source import Source, source_of, unmangled
from tlmem.compiler.front.statements import Statements
from tlmem.compiler.walking import BLOCKS, defines, is_temporary, numbered, rebuilt, walk

KINDS: dict[Any, str] = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "either",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
}


def read(function: Any) -> ir.Function:
    """The IR of a Python function, numbered.

    Raises:
        NotCompilable: something in it cannot be compiled; it says where, and what to write instead.
        TypeError: it is not a function that was written in Python.
    """
    if not isinstance(function, FunctionType):
        raise TypeError(f"compile takes a function, not {type(function).__name__} {function!r}")
    source = source_of(function)
    parameters = parameters_of(function, source)
    tree = unmangled(source.tree, function.__qualname__)
    names = Names(function, tree)
    plain = Plainness(names, tree)
    reader = Statements(names, plain, function.__name__, source.file)
    body = in_order(reader.block(tree.body))
    made = ir.Function(
        function.__name__,
        function.__qualname__,
        source.file,
        source.first_line,
        parameters,
        body,
        tuple(names.captured),
        source.lines,
        reader.temporaries,
    )
    return numbered(made)


def parameters_of(function: FunctionType, source: Source) -> tuple[ir.Parameter, ...]:
    """The arguments of a function."""
    arguments, found = source.tree.args, []
    for starred, mark in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
        if starred is not None:
            what, advice = f"'{mark}{starred.arg}'", "name each argument"
            name, line = function.__name__, starred.lineno
            raise NotCompilable(what, name, advice, source.file, line)
    hints = hints_of(function)
    for name, each in inspect.signature(function).parameters.items():
        default = each.default is not inspect.Parameter.empty
        if name == "out":
            advice = "call it otherwise; a compiled function takes out= by itself"
            what, line = "an argument 'out'", source.tree.lineno
            raise NotCompilable(what, function.__name__, advice, source.file, line)
        found.append(ir.Parameter(name, hints.get(name), KINDS[each.kind], default))
    return tuple(found)


def hints_of(function: FunctionType) -> dict[str, Any]:
    """Annotations as objects; those that cannot be read stay texts."""
    found = {}
    for name, hint in inspect.get_annotations(function).items():
        if isinstance(hint, str):
            try:
                hint = eval(hint, function.__globals__)
            except Exception:  # a name that exists for type checkers only, or in a function
                pass
        found[name] = hint
    return found


# ---- temporaries ----


def in_order(body: ir.Block) -> ir.Block:
    """The block with ``%1`` for the temporary that is defined first, and so on."""
    found = dict.fromkeys(n for each in walk(body) for n in defines(each) if is_temporary(n))
    names = {name: f"%{number}" for number, name in enumerate(found, 1)}

    def change(statement: ir.Statement) -> ir.Block:
        changed = {
            each.name: renamed(getattr(statement, each.name), names)
            for each in fields(statement)
            if each.name not in BLOCKS.get(type(statement), ())
        }
        return (replace(statement, **changed),)

    return rebuilt(body, change)


def renamed(value: Any, names: dict[str, str]) -> Any:
    """A part of a statement with other names of variables."""
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, ir.Var):
        return ir.Var(names.get(value.name, value.name))
    if isinstance(value, ir.Group):
        return replace(value, items=renamed(value.items, names))
    if isinstance(value, tuple):
        return tuple(renamed(each, names) for each in value)
    if isinstance(value, ast.expr):
        made = copy.deepcopy(value)
        for node in ast.walk(made):
            if isinstance(node, ast.Name):
                node.id = names.get(node.id, node.id)
        return made
    return value
