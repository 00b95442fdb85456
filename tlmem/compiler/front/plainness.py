"""Which expressions surely give no tensor: numbers, shapes and what is computed of them alone.

Such an expression stays one statement of the IR, as it was written.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tlmem.compiler.front.names import NUMBER_CALLS, PLAIN_CALLS, Names

METADATA = ("shape", "ndim", "dtype")
ANNOTATIONS = ("int", "float", "bool", "str")


class Plainness:
    """Knows the plain variables of one function."""

    def __init__(self, names: Names, tree: ast.FunctionDef) -> None:
        self._names = names
        self._bindings = list(bindings(tree))
        given = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
        arguments = {each.arg for each in given if not is_number_annotation(each.annotation)}
        others = {name for name, value in self._bindings if value is None}
        self.variables = names.locals - arguments - others
        while self._drop_one():
            pass

    def _drop_one(self) -> bool:
        """Takes out variables that are given something else than plain values."""
        wrong = {
            name
            for name, value in self._bindings
            if name in self.variables and value is not None and not self.holds(value)
        }
        self.variables -= wrong
        return bool(wrong)

    def holds(self, node: ast.expr) -> bool:
        """Whether an expression is plain."""
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Name):
            if node.id in self._names.locals:
                return node.id in self.variables
            return self._names.is_plain(node.id)
        if isinstance(node, ast.Attribute):
            path = self._names.path_of(node)
            if path and self._names.is_plain(path):
                return True
            return node.attr in METADATA and is_chain(node.value)
        if isinstance(node, ast.Call):
            return self._is_plain_call(node)
        if isinstance(
            node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp | ast.IfExp | ast.Subscript
        ):
            parts = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
            return all(map(self.holds, parts))
        if isinstance(node, ast.Slice):
            return all(self.holds(each) for each in (node.lower, node.upper, node.step) if each)
        return False

    def _is_plain_call(self, node: ast.Call) -> bool:
        path = self._names.path_of(node.func)
        known = self._names.is_builtin(path, PLAIN_CALLS | NUMBER_CALLS)
        given = [*node.args, *(each.value for each in node.keywords)]
        return (known or self._names.is_mathematics(path)) and all(map(self.holds, given))


def is_chain(node: ast.expr) -> bool:
    """Whether an expression is a name, perhaps with attributes."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def is_number_annotation(annotation: ast.expr | None) -> bool:
    """Whether an argument is said to be a number or a text."""
    return isinstance(annotation, ast.Name) and annotation.id in ANNOTATIONS


def bindings(tree: ast.FunctionDef) -> Iterator[tuple[str, ast.expr | None]]:
    """Each name that is given a value, and the value; None for one that is not known here."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _bound(target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from _bound(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            yield from _bound(node.target, node.value)
        elif isinstance(node, ast.For):
            counts = isinstance(node.iter, ast.Call) and isinstance(node.target, ast.Name)
            name = ast.unparse(node.iter.func) if isinstance(node.iter, ast.Call) else ""
            number = counts and name.rpartition(".")[2] in ("range", "steps")
            yield from _bound(node.target, ast.Constant(0) if number else None)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                yield from _bound(target, None)


def _bound(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        pairs: list[ast.expr | None] = [None] * len(target.elts)
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
            pairs = list(value.elts)
        for each, one in zip(target.elts, pairs, strict=True):
            yield from _bound(each, one)
