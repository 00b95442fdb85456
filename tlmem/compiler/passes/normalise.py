"""Containers called Tensor are tensors: they are taken off once, where they come in (S29).

Programs often wrap an array in a class of their own that is called Tensor. Treated as a struct, it
would be copied and walked field by field, while everybody means the one tensor inside. So an
argument that is such a container is replaced by its tensor before anything looks at it, and making
one inside a compiled function, or reading its field, gives the tensor itself. No pass behind this
one, and no policy, ever sees a struct of that name.

Covers: dataclasses and ``tlmem.struct`` of them, of one field. Does not cover: classes of several
fields, which cannot stand for one tensor and are refused.

Source: docs/seed-map.md, S29.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.errors import NotCompilable
from tlmem.compiler.passes.dataflow import Env, walked
from tlmem.compiler.walking import rebuilt, walk
from tlmem.runtime.ownership.struct import Struct
from tlmem.runtime.tensors.storage import Storage

NAME = "Tensor"
Lookup = Callable[[str], Any]
"""What a name from outside is."""


def argument(value: Any) -> Any:
    """The tensor in a container called Tensor; anything else as it is.

    Raises:
        TypeError: the container has not exactly one tensor and nothing else.
    """
    kind = type(value)
    if isinstance(value, Storage) or not (is_container(kind) or is_struct_of_container(value)):
        return value
    if isinstance(value, Struct):
        held = [value[each] for each in value.fields]
    else:
        held = [getattr(value, each.name) for each in fields(value)]
    if len(held) != 1 or not isinstance(held[0], Storage):
        raise TypeError(
            f"an argument is a container called {NAME} with {len(held)} fields, and cannot stand "
            "for one tensor; pass the tensor itself, or call the class otherwise"
        )
    return held[0]


def is_container(kind: Any) -> bool:
    """Whether a class is a dataclass called Tensor, and not that of tlmem."""
    return (
        isinstance(kind, type)
        and kind.__name__ == NAME
        and not issubclass(kind, Storage)
        and is_dataclass(kind)
    )


def is_struct_of_container(value: Any) -> bool:
    """Whether a value is a struct that was made of a container called Tensor."""
    return isinstance(value, Struct) and value._type_name == NAME


def field_of(kind: Any) -> str:
    """The only field of a container class; empty when it is none, or has not one."""
    known = fields(kind) if is_container(kind) else ()
    return known[0].name if len(known) == 1 else ""


def normalised(function: ir.Function, outside: Lookup) -> ir.Function:
    """The function in which containers called Tensor are tensors. Numbers stay.

    Raises:
        NotCompilable: it makes a container of several fields, or writes to the field of one.
    """
    kinds = {each.name: field_of(each.annotation) for each in function.parameters}
    arguments = {name: frozenset([kind]) for name, kind in kinds.items()}
    if not any(kinds.values()) and not any(map(makes_one(outside), walk(function.body))):
        return function
    transfer = transfer_of(outside)
    before = walked(function, arguments, transfer, frozenset.union).before

    def change(statement: ir.Statement) -> ir.Block:
        env = before.get(statement.number, {})
        return (changed(statement, env, function, outside),)

    body = rebuilt(function.body, change)
    return replace(function, body=body)


def makes_one(outside: Lookup) -> Callable[[ir.Statement], bool]:
    """Whether a statement makes a container called Tensor."""
    return lambda each: isinstance(each, ir.MakeStruct) and is_container(outside(each.maker.path))


def transfer_of(outside: Lookup) -> Callable[[ir.Statement, Env], Env]:
    """What each variable may be: the field of a container, or empty for anything else."""

    def transfer(statement: ir.Statement, env: Env) -> Env:
        target = getattr(statement, "target", None)
        if isinstance(statement, ir.Forget) or not isinstance(target, str):
            names = getattr(statement, "targets", ())
            return {**env, **dict.fromkeys(names, frozenset([""]))}
        found = frozenset([""])
        if isinstance(statement, ir.MakeStruct):
            found = frozenset([field_of(outside(statement.maker.path))])
        elif isinstance(statement, ir.Assign) and isinstance(statement.source, ir.Var):
            found = env.get(statement.source.name, found)
        elif isinstance(statement, ir.InPlace):
            found = env.get(target, found)
        return {**env, target: found}

    return transfer


def changed(
    statement: ir.Statement, env: Env, function: ir.Function, outside: Lookup
) -> ir.Statement:
    """A statement without the container it is about."""
    if isinstance(statement, ir.MakeStruct) and is_container(outside(statement.maker.path)):
        given = (*statement.operands, *(value for _, value in statement.options))
        if len(given) != 1 or not field_of(outside(statement.maker.path)):
            what = f"a container called {NAME} of several fields"
            raise refused(what, "call the class otherwise", statement, function)
        return named(statement.target or "_", given[0], statement)
    if isinstance(statement, (ir.GetField, ir.SetField)) and isinstance(statement.source, ir.Var):
        if env.get(statement.source.name) == frozenset([statement.field]):
            if isinstance(statement, ir.SetField):
                what = f"a write to the field of a container called {NAME}"
                raise refused(what, "make a new one", statement, function)
            if statement.target is not None:
                return named(statement.target, statement.source, statement)
    return statement


def named(target: str, source: ir.Operand, instead_of: ir.Statement) -> ir.Assign:
    """Another name of the same tensor, where a statement stood."""
    return ir.Assign(target, source, place=instead_of.place, number=instead_of.number)


def refused(
    what: str, advice: str, statement: ir.Statement, function: ir.Function
) -> NotCompilable:
    """The error of a container that cannot be a tensor."""
    return NotCompilable(what, function.name, advice, function.file, statement.place.line)
