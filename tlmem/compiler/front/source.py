"""The source of a function: its own syntax tree, with the lines of its file.

Covers: files, notebooks and whatever else ``linecache`` knows; names that are private to a class,
``self.__weight``, as Python itself writes them. Does not cover: what the tree means.
"""

from __future__ import annotations

import ast
import copy
import inspect
from collections import OrderedDict
from dataclasses import dataclass
from types import CodeType, FunctionType

from tlmem.compiler.errors import NotCompilable

_KEPT_FILES = 16
_trees: OrderedDict[tuple[str, int], ast.Module] = OrderedDict()
"""Of files that were read last, by name and hash of the text: decorating is done file by file."""


@dataclass(frozen=True)
class Source:
    """Where a function was written.

    Attributes:
        tree: its definition; line numbers are those of the file.
        lines: of the definition, decorators too; ``lines[0]`` is ``first_line``.
    """

    tree: ast.FunctionDef
    file: str
    first_line: int
    lines: tuple[str, ...]


def source_of(function: FunctionType) -> Source:
    """The source of a function.

    Raises:
        NotCompilable: it is a lambda or an asynchronous function, or its source is not to be had or
            is another one by now.
    """
    code = function.__code__
    name, file, first = function.__qualname__, code.co_filename, code.co_firstlineno
    if hasattr(function, "__wrapped__"):
        advice = "write @tlmem.compile directly above def, and the other decorators above it"
        raise NotCompilable("a function under another decorator", name, advice, file, first)
    if code.co_name == "<lambda>":
        advice = "write it as a function: def name(...): return ..."
        raise NotCompilable("'lambda'", "lambda", advice, file, first)
    try:
        lines, _ = inspect.findsource(code)
    except (OSError, TypeError):
        advice = "its source is not to be found; put it in a file or a cell of a notebook"
        raise NotCompilable("code without source", name, advice, file, 0) from None
    found = definition(tree_of("".join(lines), code, name), code)
    if isinstance(found, ast.AsyncFunctionDef):
        advice = "write def, and await its arguments where it is called"
        raise NotCompilable("'async def'", name, advice, file, found.lineno)
    if found is None:
        advice = "its file has changed since it was loaded; start the program again"
        raise NotCompilable("code without source", name, advice, file, first)
    return Source(found, file, first, tuple(lines[first - 1 : found.end_lineno]))


def tree_of(text: str, code: CodeType, name: str) -> ast.Module:
    """The syntax tree of a whole file; raises NotCompilable when it is not Python any more."""
    key = (code.co_filename, hash(text))
    if key not in _trees:
        try:
            _trees[key] = ast.parse(text, code.co_filename)
        except SyntaxError as error:
            advice = "its file has changed since it was loaded; start the program again"
            what = "code without source"
            raise NotCompilable(what, name, advice, code.co_filename, error.lineno or 0) from None
        while len(_trees) > _KEPT_FILES:
            _trees.popitem(last=False)
    return _trees[key]


def definition(tree: ast.Module, code: CodeType) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The definition that a code object was made of; None when there is none such any more."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            arguments = node.args
            given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            same = tuple(each.arg for each in given) == code.co_varnames[: len(given)]
            if first == code.co_firstlineno and same:
                return node
    return None


# ---- names that are private to a class ----


class _Mangler(ast.NodeTransformer):
    def __init__(self, owner: str) -> None:
        self._prefix = f"_{owner.lstrip('_')}"

    def _mangled(self, name: str) -> str:
        private = name.startswith("__") and not name.endswith("__") and "." not in name
        return self._prefix + name if private else name

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        node.attr = self._mangled(node.attr)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._mangled(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._mangled(node.arg)
        return node


def unmangled(tree: ast.FunctionDef, qualname: str) -> ast.FunctionDef:
    """The definition with the names that it really uses, as it is compiled outside of its class."""
    owner = qualname.split(".")[-2] if "." in qualname else "<locals>"
    if owner == "<locals>" or not owner.strip("_"):
        return tree
    made: ast.FunctionDef = _Mangler(owner).visit(copy.deepcopy(tree))
    return made
