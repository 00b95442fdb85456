"""Names that are private to a class, ``self.__weight``, as Python itself writes them."""

from __future__ import annotations

import ast
import copy


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
