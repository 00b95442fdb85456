"""Temporaries numbered in the order in which they get their values."""

from __future__ import annotations

import ast
import copy
from dataclasses import fields, replace
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.walking import BLOCKS, defines, is_temporary, rebuilt, walk


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
