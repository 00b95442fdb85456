"""Where each variable ends: a tensor is freed behind its last use, not at the end of the function.

Covers: the policy ``default``, in which a variable holds a tensor as any name of Python does.
Arguments are borrowed: the caller holds them anyway.

Source: contracts B15, S19.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.passes.abstract import UNKNOWN, PlainType, is_known
from tlmem.compiler.passes.liveness import Liveness
from tlmem.compiler.passes.shapes import Shapes
from tlmem.compiler.walking import BLOCKS, LEAVING, defines, reads, walk


def with_drops(
    function: ir.Function, live: Liveness, shapes: Shapes, kept: Iterable[str] = ()
) -> ir.Function:
    """The function with a ``Drop`` behind the last use of each variable that may hold a tensor.

    Args:
        kept: variables that need none, such as those that never become one.
    """
    never = {each.name for each in function.parameters} | set(kept) | plain_names(function, shapes)

    def drops(names: Iterable[str], place: ir.Place, number: int) -> list[ir.Statement]:
        return [ir.Drop(each, place=place, number=number) for each in sorted(set(names) - never)]

    def block(statements: ir.Block, first: list[ir.Statement]) -> ir.Block:
        made = first
        for at, statement in enumerate(statements):
            inner: dict[str, Any] = {
                name: block(
                    getattr(statement, name),
                    drops(live.unneeded(statement, name), statement.place, statement.number),
                )
                for name in BLOCKS.get(type(statement), ())
                if getattr(statement, name)
                or live.unneeded(statement, name) - never
                and name == "orelse"
            }
            made.append(replace(statement, **inner) if inner else statement)
            following = statements[at + 1 : at + 2]
            if following and not isinstance(following[0], LEAVING):
                ended = live.ended(statement)
                if isinstance(statement, ir.If):  # its blocks see to what they read
                    ended &= frozenset(reads(statement))
                made += drops(ended, statement.place, statement.number)
        return tuple(made)

    return replace(function, body=block(function.body, []))


def plain_names(function: ir.Function, shapes: Shapes) -> set[str]:
    """Variables that never hold anything but numbers, texts and the like."""
    found: dict[str, bool] = {}
    for statement in walk(function.body):
        for name in defines(statement):
            value = shapes.values.get(statement.number, {}).get(name, UNKNOWN)
            plain = isinstance(value, PlainType) or is_known(value)
            found[name] = found.get(name, True) and plain
    return {name for name, plain in found.items() if plain}
