"""What the names in a function mean: locals, names from outside, operations of tlmem.

Covers: what a name from outside is when the function is decorated. Does not cover: what it is when
the function is called, which a specialisation looks at.
"""

from __future__ import annotations

import ast
import builtins
import math
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from types import FunctionType
from typing import Any

from tlmem._exports import MODULE_OF
from tlmem.runtime.tensors import operators

OP_MODULES = ("elementwise", "factories", "functions", "linalg", "reductions", "shaping", "views")
OTHER_OPS = {
    "tlmem.runtime.autograd.tape": ("detach",),
    "tlmem.runtime.tensors.interop": ("from_numpy",),
}
METHODS = frozenset(operators.METHODS) | frozenset(
    "astype backward broadcast_to contiguous copy detach fill flatten item permute requires_grad_ "
    "reshape squeeze swapaxes to tolist transpose unsqueeze".split()
)
"""Methods of a tensor that are operations; every other method may do anything."""

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder",
    ast.Pow: "power",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor",
    ast.USub: "negative",
    ast.Invert: "invert",
    ast.Eq: "equal",
    ast.NotEq: "not_equal",
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}

PLAIN_CALLS = frozenset(
    "bool callable float format hasattr hash id int isinstance len print repr slice str "
    "type".split()
)
"""Builtins that keep nothing and give no tensor."""
NUMBER_CALLS = frozenset("abs min max sum round range divmod pow tuple list sorted".split())
"""Builtins that give no tensor when they are given none."""

MISSING: Any = object()


@cache
def operations() -> dict[int, str]:
    """The public functions that are operations: their identity, and their name."""
    found = {}
    for name, module in MODULE_OF.items():
        if module.rpartition(".")[2] in OP_MODULES or name in OTHER_OPS.get(module, ()):
            found[id(getattr(import_module(module), name))] = name
    return found


class Names:
    """The names of one function.

    Attributes:
        captured: first names that were read from outside, in order.
    """

    def __init__(self, function: FunctionType, tree: ast.FunctionDef) -> None:
        self._function = function
        arguments = tree.args
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        self.locals = {each.arg for each in given} | stored(tree.body)
        self.captured: dict[str, None] = {}

    def path_of(self, node: ast.expr) -> str:
        """``model.head.w`` of a name from outside with attributes; empty for anything else."""
        if isinstance(node, ast.Name):
            return "" if node.id in self.locals else node.id
        if isinstance(node, ast.Attribute):
            path = self.path_of(node.value)
            return f"{path}.{node.attr}" if path else ""
        return ""

    def capture(self, path: str) -> None:
        """Remembers that the function reads it."""
        self.captured[path.partition(".")[0]] = None

    def value(self, path: str) -> Any:
        """What a name from outside is now; MISSING when there is no such name yet."""
        return value_of(self._function, path)

    def operation(self, path: str) -> str:
        """The operation of tlmem that a name is; empty for none."""
        return operations().get(id(self.value(path)), "") if path else ""

    def makes_struct(self, path: str) -> bool:
        """Whether a name is a dataclass, or ``tlmem.struct``."""
        found = self.value(path) if path else None
        if isinstance(found, type):
            return is_dataclass(found)
        return getattr(found, "__module__", "") == MODULE_OF["struct"] and callable(found)

    def is_compiled(self, path: str) -> bool:
        """Whether a name is a compiled function, as far as that is known when it is decorated.

        The function itself is one by its name, which it has not got yet. A method is not what a
        name from outside means.
        """
        found = self.value(path) if path else None
        if is_compiled(found):
            return True
        itself = path == self._function.__name__ and not is_method(self._function)
        return itself and (found is MISSING or found is self._function)

    def is_builtin(self, path: str, names: frozenset[str]) -> bool:
        """Whether a name is one of these builtins, and not something else of that name."""
        return path in names and self.value(path) is getattr(builtins, path)

    def is_mathematics(self, path: str) -> bool:
        """Whether a name is a function of the module ``math``."""
        found = self.value(path) if path else None
        return found is not None and getattr(math, path.rpartition(".")[2], None) is found

    def is_plain(self, path: str) -> bool:
        """Whether a name from outside is a number, a text or a tuple of them, or None."""
        return is_plain_value(self.value(path))


def value_of(function: FunctionType, path: str) -> Any:
    """What a name is for a function, from its cells, its module or Python; MISSING for nothing."""
    first, *rest = path.split(".")
    free = function.__code__.co_freevars
    if first in free:
        try:
            found = (function.__closure__ or ())[free.index(first)].cell_contents
        except ValueError:  # it gets its value later
            return MISSING
    else:
        found = function.__globals__.get(first, getattr(builtins, first, MISSING))
    for name in rest:
        if found is MISSING:
            break
        try:
            found = getattr(found, name, MISSING)
        except Exception:  # a property of the program's, for which it is too early
            return MISSING
    return found


def is_method(function: FunctionType) -> bool:
    """Whether a function was defined in the body of a class."""
    around = function.__qualname__.rpartition(".")[0]
    return bool(around) and not around.endswith("<locals>")


def is_compiled(value: Any) -> bool:
    """Whether a value is a compiled function."""
    return getattr(getattr(value, "compiled", None), "is_of_tlmem", False) is True


def is_plain_value(value: Any) -> bool:
    """Whether a value is a number, a text, None, or a tuple of such."""
    if type(value) is tuple:
        return all(map(is_plain_value, value))
    return value is None or type(value) in (bool, int, float, str)


def stored(body: list[ast.stmt]) -> set[str]:
    """The names that statements give a value."""
    nodes = (node for statement in body for node in ast.walk(statement))
    return {
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del)
    }
