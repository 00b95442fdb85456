"""Calls of compiled functions that are like operations: they read their arguments, and give a
tensor in memory of its own.

Such a call becomes an operation with a rule of its own, so that its result can be planned, and its
arguments stay planned. Covers: which calls, and what they give. Does not cover: calls that may hold
or change something, which stay calls.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

from tlmem.compiler import ir
from tlmem.compiler.passes.abstract import PlainType, TensorType, is_known
from tlmem.compiler.passes.liveness import live
from tlmem.compiler.passes.origins import OUTSIDE, origins
from tlmem.compiler.passes.shape_rules import NotKnown, Rule, callees, rule_of
from tlmem.compiler.passes.shapes import Outside, infer
from tlmem.compiler.walking import operands_of, rebuilt, walk
from tlmem.runtime.core import CPU

MOST_CALLS = 16
FIELDS = ("T", "shape", "dtype", "ndim", "size")
HARMLESS = (
    ir.Op,
    ir.Plain,
    ir.Assign,
    ir.Unpack,
    ir.GetField,
    ir.If,
    ir.For,
    ir.While,
    ir.Break,
    ir.Continue,
    ir.Return,
)
_known: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Name of an operation -> the compiled function that it calls."""


@dataclass(frozen=True)
class Callees:
    """What was found.

    Attributes:
        function: with operations in the place of such calls.
        paths: path of a function -> what it must be for that.
    """

    function: ir.Function
    paths: dict[str, Any]


def with_callees(
    function: ir.Function, arguments: dict[str, Any], outside: Outside, value: Callable[[str], Any]
) -> Callees:
    """The function with each call of a harmless compiled function as an operation.

    Args:
        arguments: name -> abstract value.
        value: gives what a path from outside is now.
    """
    paths: dict[str, Any] = {}
    refused: set[int] = set()
    for _ in range(MOST_CALLS):
        waiting = [
            each
            for each in walk(function.body)
            if isinstance(each, ir.Call) and each.compiled and each.number not in refused
        ]
        if not waiting:
            break
        call, before = waiting[0], infer(function, arguments, outside).before
        made = as_operation(call, before.get(call.number), outside, value)
        if made is None:
            refused.add(call.number)
            continue
        paths[made.callee] = value(made.callee)
        function = replace(function, body=rebuilt(function.body, exchanging(call, made)))
    return Callees(function, paths)


def exchanging(call: ir.Call, made: ir.Op) -> Callable[[ir.Statement], ir.Block]:
    """Puts one statement in the place of another."""
    return lambda each: (made,) if each.number == call.number else (each,)


def as_operation(
    call: ir.Call, env: dict[str, Any] | None, outside: Outside, value: Callable[[str], Any]
) -> ir.Op | None:
    """The operation that a call is; None when it may be more than that."""
    if env is None or call.method or call.options or not isinstance(call.function, ir.Captured):
        return None
    compiled = getattr(value(call.function.path), "compiled", None)
    if compiled is None or compiled.policy != "default" or not is_harmless(compiled.ir):
        return None
    given: list[Any] = []
    for each in call.operands:
        if isinstance(each, ir.Var):
            given.append(env.get(each.name))
        elif isinstance(each, ir.Captured):
            given.append(outside.value(each.path))
        else:
            given.append(each.value if isinstance(each, ir.Const) else None)
    if result_of_call(compiled.ir, tuple(given)) is None:
        return None
    return ir.Op(
        call.target,
        name_of(compiled),
        call.operands,
        form="function",
        callee=call.function.path,
        number=call.number,
        place=call.place,
    )


def name_of(compiled: Any) -> str:
    """The name of the operation that calls a function; its rule is known from then on."""
    name = f"{compiled.ir.name}()"
    while _known.setdefault(name, compiled) is not compiled:
        name += "'"
    callees[name] = rule(name)
    return name


def rule(name: str) -> Rule:
    """The rule of a call."""

    def given(*operands: Any) -> TensorType:
        compiled = _known.get(name)
        made = result_of_call(compiled.ir, operands) if compiled is not None else None
        if made is None:
            raise NotKnown
        return made

    return Rule(given, out=True)


# ---- the function that is called ----


def is_harmless(function: ir.Function) -> bool:
    """Whether a function, whatever it is given, holds nothing, changes nothing, and hangs on
    nothing but its arguments."""
    if not function.body or not isinstance(function.body[-1], ir.Return):
        return False
    for each in walk(function.body):
        if not isinstance(each, HARMLESS):
            return False
        if isinstance(each, ir.Op) and not is_plain_op(each):
            return False
        if isinstance(each, ir.GetField) and (each.field not in FIELDS or each.is_item):
            return False
        if isinstance(each, ir.For) and each.iterable == "steps":
            return False
        if isinstance(each, ir.Plain) and any(
            isinstance(node, ast.Name) and node.id in function.captured
            for node in ast.walk(each.expression)
        ):
            return False
        if any(isinstance(operand, ir.Captured) for operand in operands_of(each)):
            return False
    return True


def is_plain_op(op: ir.Op) -> bool:
    """Whether an operation only computes."""
    known = rule_of(op.op)
    if known is None or known.keeps or "()" in op.op:
        return False
    names = {name for name, _ in op.options}
    return op.op not in ("backward", "zero_grad", "clear_grads", "fill") and not names & {
        "out",
        "requires_grad",
    }


def result_of_call(function: ir.Function, given: tuple[Any, ...]) -> TensorType | None:
    """The tensor that a harmless function gives in memory of its own; None: that is not sure."""
    if len(given) != len(function.parameters) or not all(map(is_plain_value, given)):
        return None
    if any(each.kind == "keyword" for each in function.parameters):
        return None
    names = [each.name for each in function.parameters]
    shapes = infer(function, dict(zip(names, given, strict=True)), Outside())
    if shapes.failures or not shapes.returned:
        return None
    found = origins(function, shapes, live(function))
    results = set()
    for statement in walk(function.body):
        if not isinstance(statement, ir.Return) or statement.number not in shapes.returned:
            continue
        env = found.objects.get(statement.number, {})  # a view lies otherwise than a copy of it
        if not isinstance(statement.value, ir.Var):
            return None
        memories = env.get(statement.value.name, OUTSIDE)
        if not memories or 0 in memories:
            return None
        results.add(shapes.returned[statement.number])
    made = results.pop() if len(results) == 1 else None
    if not isinstance(made, TensorType) or made.shape is None or made.dtype is None:
        return None
    fits = made.device == CPU and made.grad is False
    return replace(made, contiguous=False) if fits else None


def is_plain_value(value: Any) -> bool:
    """Whether an argument is a number, or a tensor that is known and needs no gradient."""
    if isinstance(value, TensorType):
        known = value.shape is not None and value.dtype is not None
        return known and value.device == CPU and value.grad is False
    if isinstance(value, PlainType):
        return value.kind in (bool, int, float)
    return is_known(value) and isinstance(value, bool | int | float)
