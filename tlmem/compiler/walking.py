"""Walking over the IR: numbering, names that a statement reads and defines, rebuilding.

Covers: what every pass needs. Does not cover: what a pass decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from tlmem.compiler import ir

BLOCKS = {
    ir.If: ("then", "orelse"),
    ir.For: ("body",),
    ir.While: ("condition", "body"),
}
LOOPS = (ir.For, ir.While)
LEAVING = (ir.Break, ir.Continue, ir.Return, ir.Raise)


def blocks_of(statement: ir.Statement) -> tuple[ir.Block, ...]:
    """The blocks inside a statement, in the order of the program."""
    return tuple(getattr(statement, name) for name in BLOCKS.get(type(statement), ()))


def walk(block: ir.Block) -> Iterator[ir.Statement]:
    """Every statement of a block and of the blocks in it, in the order of the program."""
    for statement in block:
        yield statement
        for inner in blocks_of(statement):
            yield from walk(inner)


def rebuilt(block: ir.Block, change: Callable[[ir.Statement], ir.Block]) -> ir.Block:
    """The block with each statement replaced by what ``change`` gives for it, inner ones first."""
    made: list[ir.Statement] = []
    for statement in block:
        inner: dict[str, Any] = {
            name: rebuilt(getattr(statement, name), change)
            for name in BLOCKS.get(type(statement), ())
        }
        made.extend(change(replace(statement, **inner) if inner else statement))
    return tuple(made)


def numbered(function: ir.Function) -> ir.Function:
    """The function with its statements numbered in the order of the program.

    Arguments are definitions 1 to n, as in S10. An ownership operation has the number of the
    statement before it, or of the one behind it when it is the first.
    """
    count = len(function.parameters)

    def number_block(block: ir.Block) -> ir.Block:
        nonlocal count
        made = []
        for statement in block:
            if not isinstance(statement, ir.Owned):
                count += 1
            changed: dict[str, Any] = {"number": count}
            for name in BLOCKS.get(type(statement), ()):
                changed[name] = number_block(getattr(statement, name))
            made.append(replace(statement, **changed))
        return tuple(made)

    return replace(function, body=number_block(function.body))


def last_number(statement: ir.Statement) -> int:
    """The number of the last statement inside a statement, or its own."""
    return max([statement.number, *(each.number for b in blocks_of(statement) for each in walk(b))])


# ---- names ----


def names_in(operand: Any) -> tuple[str, ...]:
    """The local variables in an operand, in order, each as often as it stands there."""
    if isinstance(operand, ir.Var):
        return (operand.name,)
    if isinstance(operand, ir.Group):
        return tuple(name for item in operand.items for name in names_in(item))
    return ()


def operands_of(statement: ir.Statement) -> tuple[ir.Operand, ...]:
    """The operands a statement reads itself, not those of statements inside it."""
    found: list[ir.Operand] = []
    for each in fields(statement):
        value = getattr(statement, each.name)
        if isinstance(value, ir.Operand):
            found.append(value)
        elif each.name == "operands":
            found.extend(value)
        elif each.name == "options":
            found.extend(operand for _, operand in value)
    return tuple(found)


def reads(statement: ir.Statement) -> tuple[str, ...]:
    """The local variables a statement reads itself; those of a loop's test once a turn.

    The test of a ``While`` is read behind its ``condition``, and counted at the loop itself.
    """
    if isinstance(statement, ir.Plain):
        return statement.reads
    if isinstance(statement, ir.Owned):
        return (statement.name,)
    if isinstance(statement, ir.Forget):
        return (statement.target,)
    found = [name for operand in operands_of(statement) for name in names_in(operand)]
    if isinstance(statement, ir.InPlace):
        found.insert(0, statement.target)
    return tuple(found)


def defines(statement: ir.Statement) -> tuple[str, ...]:
    """The local variables a statement gives a value itself."""
    if isinstance(statement, ir.Forget):
        return ()
    if isinstance(statement, (ir.Unpack, ir.For)):
        return statement.targets
    target = getattr(statement, "target", None)
    return (target,) if isinstance(target, str) else ()


def is_temporary(name: str) -> bool:
    """Whether a variable has no name in the program."""
    return name.startswith("%")


def variables(function: ir.Function) -> tuple[str, ...]:
    """All local variables, arguments first, in the order of their first definition."""
    found = dict.fromkeys(parameter.name for parameter in function.parameters)
    for statement in walk(function.body):
        found.update(dict.fromkeys(defines(statement)))
    return tuple(found)
