"""The text of the IR: one line a statement, as golden files and listings show it.

forward(x, w):
  3  %1 = matmul x, w
  4  return %1
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import singledispatch
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.walking import blocks_of

NUMBER_WIDTH = 3


def text(function: ir.Function) -> str:
    """The function as text, ending with a newline."""
    names = ", ".join(parameter.name for parameter in function.parameters)
    return "\n".join([f"{function.name}({names}):", *lines(function.body), ""])


def lines(block: ir.Block, depth: int = 1) -> Iterator[str]:
    """The lines of a block, two spaces for each depth behind the number."""
    for statement in block:
        yield f"{statement.number or '':>{NUMBER_WIDTH}}{'  ' * depth}{statement_text(statement)}"
        if isinstance(statement, ir.If):
            yield from lines(statement.then, depth + 1)
            if statement.orelse:
                yield f"{'':>{NUMBER_WIDTH}}{'  ' * depth}else:"
                yield from lines(statement.orelse, depth + 1)
        elif isinstance(statement, ir.While):
            yield from lines(statement.condition, depth + 1)
            yield f"{'':>{NUMBER_WIDTH}}{'  ' * depth}do:"
            yield from lines(statement.body, depth + 1)
        else:
            for inner in blocks_of(statement):
                yield from lines(inner, depth + 1)


def operand_text(operand: ir.Operand) -> str:
    """``x``, ``@ANTI`` for a captured name, ``1.5``, ``(a, b)``."""
    if isinstance(operand, ir.Var):
        return operand.name
    if isinstance(operand, ir.Captured):
        return f"@{operand.path}"
    if isinstance(operand, ir.Const):
        return repr(operand.value)
    inner = ", ".join(operand_text(item) for item in operand.items)
    if operand.kind == "list":
        return f"[{inner}]"
    return f"({inner},)" if len(operand.items) == 1 else f"({inner})"


def _arguments(operands: tuple[ir.Operand, ...], options: ir.Options = ()) -> str:
    given = [operand_text(operand) for operand in operands]
    return ", ".join([*given, *(f"{name}={operand_text(value)}" for name, value in options)])


def _defined(target: str | None, what: str) -> str:
    return f"{target} = {what}" if target else what


@singledispatch
def statement_text(statement: ir.Statement) -> str:
    """One statement without what is inside it."""
    return type(statement).__name__.lower()


@statement_text.register
def _(statement: ir.Op) -> str:
    arguments = _arguments(statement.operands, statement.options)
    return _defined(statement.target, f"{statement.op} {arguments}".rstrip())


@statement_text.register
def _(statement: ir.Call) -> str:
    method = f".{statement.method}" if statement.method else ""
    arguments = _arguments(statement.operands, statement.options)
    word = "call" if statement.compiled else "call unknown"
    called = f"{word} {operand_text(statement.function)}{method}({arguments})"
    return _defined(statement.target, called)


@statement_text.register
def _(statement: ir.Plain) -> str:
    return _defined(statement.target, f"plain {ast.unparse(statement.expression)}")


@statement_text.register
def _(statement: ir.Assign) -> str:
    return f"{statement.target} = {operand_text(statement.source)}"


@statement_text.register
def _(statement: ir.Unpack) -> str:
    return f"{', '.join(statement.targets)} = unpack {operand_text(statement.source)}"


@statement_text.register
def _(statement: ir.MakeStruct) -> str:
    arguments = _arguments(statement.operands, statement.options)
    return _defined(statement.target, f"struct {operand_text(statement.maker)}({arguments})")


@statement_text.register
def _(statement: ir.GetField) -> str:
    return _defined(statement.target, f"field {operand_text(statement.source)}.{statement.field}")


@statement_text.register
def _(statement: ir.SetField) -> str:
    value = operand_text(statement.value)
    return f"field {operand_text(statement.source)}.{statement.field} = {value}"


@statement_text.register
def _(statement: ir.SetItem) -> str:
    place = f"{operand_text(statement.source)}[{operand_text(statement.key)}]"
    return f"item {place} = {operand_text(statement.value)}"


@statement_text.register
def _(statement: ir.InPlace) -> str:
    return f"{statement.target} = in place {statement.op} {operand_text(statement.value)}"


@statement_text.register
def _(statement: ir.Forget) -> str:
    return f"del {statement.target}"


@statement_text.register
def _(statement: ir.Raise) -> str:
    cause = f" from {operand_text(statement.cause)}" if statement.cause is not None else ""
    return f"raise {operand_text(statement.error)}{cause}"


@statement_text.register
def _(statement: ir.For) -> str:
    inside = _arguments(statement.operands, statement.options)
    latch = " clearing gradients" if statement.clears_grads else ""
    return f"for {', '.join(statement.targets)} in {statement.iterable} {inside}{latch}:"


@statement_text.register
def _(statement: ir.Release) -> str:
    return f"release {statement.name} {'safely' if statement.safe else f'by {statement.holder}'}"


@statement_text.register
def _(statement: ir.Owned) -> str:
    return f"{type(statement).__name__.lower()} {statement.name}"


def _form(kind: type[ir.Statement], form: str, field: str = "") -> None:
    """A statement whose text is one phrase, ``{}`` being an operand of it."""

    def told(statement: Any) -> str:
        return form.format(operand_text(getattr(statement, field)) if field else "", it=statement)

    statement_text.register(kind, told)


_form(ir.If, "if {}:", "test")
_form(ir.While, "while {}, computed by:", "test")
_form(ir.Return, "return {}", "value")
_form(ir.Acquire, "acquire {it.name} for {it.holder}")
_form(ir.Move, "{it.target} = move {it.name}")
_form(ir.Slot, "slot {it.slot} for {it.name} at {it.offset}, {it.size} bytes")
