"""Shapes and dtypes of all values of a function, from those of its arguments.

Covers: one walk over the IR with abstract values; loops are walked until nothing changes. Does not
cover: single operations (``shape_rules``), plain expressions (``constants``), what annotations of
arguments say (``signature``).

What is not known costs a slot and nothing else. What is said is right for every call whose
arguments, and whose values from outside, are of the same abstract values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass, replace
from dataclasses import fields as fields_of
from functools import reduce
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.passes.abstract import (
    UNKNOWN,
    PlainType,
    StructType,
    TensorType,
    abstract,
    joined,
)
from tlmem.compiler.passes.constants import attribute, value_of
from tlmem.compiler.passes.dataflow import Env, walked
from tlmem.compiler.passes.shape_rules import of_python, result_of
from tlmem.compiler.walking import defines, walk
from tlmem.runtime.dtypes import WHOLE


def nothing_known(path: str) -> Any:
    """What is known of a name from outside by default: nothing."""
    return UNKNOWN


def no_fields(path: str) -> None:
    """The fields of a class by default: not known."""


@dataclass(frozen=True)
class Outside:
    """What is known of names from outside.

    Attributes:
        value: path -> its abstract value; it must hold for every call.
        fields: path of a class -> its name and fields, when making one gives each argument to the
            field of that name and does nothing else.
    """

    value: Callable[[str], Any] = nothing_known
    fields: Callable[[str], tuple[str, tuple[str, ...]] | None] = no_fields


@dataclass
class Shapes:
    """What is known of the values of a function.

    Attributes:
        values: number of a statement -> for each variable that it defines, its abstract value.
        before: number -> the abstract values of all variables there.
        failures: number -> what an operation will raise, whatever its elements are.
        returned: number of each return -> its abstract value.
    """

    values: dict[int, Env] = field(default_factory=dict)
    before: dict[int, Env] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    returned: dict[int, Any] = field(default_factory=dict)

    def tensor(self, number: int, name: str) -> TensorType | None:
        """The tensor that a statement gives a variable; None when it is not known to be one."""
        found = self.values.get(number, {}).get(name)
        return found if isinstance(found, TensorType) else None


def infer(function: ir.Function, arguments: Env, outside: Outside | None = None) -> Shapes:
    """The shapes of a numbered function.

    Args:
        arguments: name -> abstract value; one that is left out is unknown.
    """
    pass_ = _Pass(outside or Outside())
    given = {each.name: arguments.get(each.name, UNKNOWN) for each in function.parameters}
    flow = walked(function, given, pass_.transfer, joined)
    found = Shapes(before=flow.before)
    for statement in walk(function.body):
        env = flow.before.get(statement.number)
        if env is None:
            continue
        if isinstance(statement, ir.Return):
            found.returned[statement.number] = pass_.operand(statement.value, env)
        elif defines(statement):
            after = pass_.transfer(statement, env)
            found.values[statement.number] = {name: after[name] for name in defines(statement)}
        if isinstance(statement, ir.Op) and (why := pass_.failure(statement, env)):
            found.failures[statement.number] = why
    return found


def class_fields(found: Any) -> tuple[str, tuple[str, ...]] | None:
    """For ``Outside.fields``: those of a dataclass whose arguments become its fields unchanged."""
    if not (isinstance(found, type) and is_dataclass(found)):
        return None
    own = [each for base in found.__mro__[:-1] for each in vars(base)]
    made = vars(found).get("__dataclass_params__")
    if made is None or not made.init or "__post_init__" in own or "__setattr__" in own:
        return None
    known = fields_of(found)
    return (
        (found.__qualname__, tuple(f.name for f in known)) if all(f.init for f in known) else None
    )


class _Pass:
    """What each statement does to the abstract values of the variables."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside

    def transfer(self, statement: ir.Statement, env: Env) -> Env:
        read = getattr(self, f"_{type(statement).__name__.lower()}", None)
        if read is None:
            return {**env, **dict.fromkeys(defines(statement), UNKNOWN)}
        changed: Env = read(statement, env)
        return changed

    def operand(self, operand: ir.Operand, env: Env, of_op: bool = False) -> Any:
        """The abstract value of an operand; a list that the program keeps may change later."""
        if isinstance(operand, ir.Var):
            return env.get(operand.name, UNKNOWN)
        if isinstance(operand, ir.Captured):
            return self.outside.value(operand.path)
        if isinstance(operand, ir.Const):
            return abstract(operand.value)
        if operand.kind == "list" and not of_op:
            return UNKNOWN
        return tuple(self.operand(item, env, of_op) for item in operand.items)

    # ---- what gives values ----

    def _op(self, op: ir.Op, env: Env) -> Env:
        try:
            made = self.result(op, env)
        except Exception:  # the program will find out itself; see ``failures``
            made = UNKNOWN
        if op.op == "requires_grad_":
            env = self.without_gradients(env)
        elif op.form == "method" and not isinstance(self.operand(op.operands[0], env), TensorType):
            env = self.after_call(env)
        return self.set(env, op.target, made)

    def result(self, op: ir.Op, env: Env) -> Any:
        """The abstract result of an operation; raises what it will raise."""
        given = tuple(self.operand(each, env, True) for each in op.operands)
        options = {name: self.operand(each, env, True) for name, each in op.options}
        if op.form == "method" and not isinstance(given[0], TensorType):
            return UNKNOWN  # a method of that name of something else
        if op.form == "operator" and any(map(is_somebodys, given[:2])):
            return UNKNOWN
        return result_of(op.op, given, options)

    def failure(self, op: ir.Op, env: Env) -> str:
        """What an operation will raise; empty when it may not."""
        try:
            self.result(op, env)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def _inplace(self, statement: ir.InPlace, env: Env) -> Env:
        left, right = env.get(statement.target, UNKNOWN), self.operand(statement.value, env)
        if isinstance(left, TensorType):
            return env
        try:
            known = isinstance(right, TensorType) and not is_somebodys(left)
            made = result_of(statement.op, (left, right)) if known else UNKNOWN
            if not known:
                made = of_python(statement.op, (left, right), {})
        except Exception:
            made = UNKNOWN
        return self.set(env, statement.target, made)

    def _plain(self, statement: ir.Plain, env: Env) -> Env:
        made = value_of(
            statement.expression, lambda name: env.get(name, UNKNOWN), self.outside.value
        )
        return self.set(env, statement.target, made)

    def _assign(self, statement: ir.Assign, env: Env) -> Env:
        return self.set(env, statement.target, self.operand(statement.source, env))

    def _unpack(self, statement: ir.Unpack, env: Env) -> Env:
        source = self.operand(statement.source, env, True)
        return {**env, **unpacked(source, statement.targets)}

    def _for(self, loop: ir.For, env: Env) -> Env:
        if loop.iterable != "items":
            return {**env, **dict.fromkeys(loop.targets, PlainType(int))}
        items: Any = tuple(self.operand(each, env, True) for each in loop.operands)
        if loop.callee:
            (items,) = items
        if isinstance(items, TensorType) and items.shape:
            item: Any = replace(items, shape=items.shape[1:], contiguous=False)
        else:
            item = reduce(joined, items) if isinstance(items, tuple) and items else UNKNOWN
        if len(loop.targets) == 1:
            return {**env, loop.targets[0]: item}
        return {**env, **unpacked(item, loop.targets)}

    def _forget(self, statement: ir.Forget, env: Env) -> Env:
        return {name: value for name, value in env.items() if name != statement.target}

    # ---- structs and calls ----

    def _makestruct(self, statement: ir.MakeStruct, env: Env) -> Env:
        known = self.outside.fields(statement.maker.path)
        if known is None:
            return self.set(self.after_call(env), statement.target, UNKNOWN)
        name, names = known
        given = {
            **dict(
                zip(names, (self.operand(each, env) for each in statement.operands), strict=False)
            ),
            **{option: self.operand(each, env) for option, each in statement.options},
        }
        made = StructType(name, tuple((each, given.get(each, UNKNOWN)) for each in names))
        return self.set(env, statement.target, made)

    def _getfield(self, statement: ir.GetField, env: Env) -> Env:
        source = self.operand(statement.source, env)
        made: Any = attribute(source, statement.field)
        if statement.field == "grad" and isinstance(source, TensorType):
            made = replace(source, grad=None, contiguous=False)  # or None, which computes nothing
        if statement.field == "T" and isinstance(source, TensorType):
            try:
                made = result_of("T", (source,))
            except Exception:
                made = UNKNOWN
        return self.set(env, statement.target, made)

    def _setfield(self, statement: ir.SetField, env: Env) -> Env:
        """Every struct of the same class may be the one that is written to."""
        value, source = self.operand(statement.value, env), self.operand(statement.source, env)
        if not isinstance(source, StructType):
            return self.after_call(env)
        return {
            name: written(each, source.name, statement.field, value) for name, each in env.items()
        }

    def _call(self, call: ir.Call, env: Env) -> Env:
        return self.set(self.after_call(env), call.target, UNKNOWN)

    def after_call(self, env: Env) -> Env:
        """After something that may write to any struct, or ask for any gradient."""
        return {
            name: UNKNOWN if has_struct(value) else value
            for name, value in self.without_gradients(env).items()
        }

    @staticmethod
    def without_gradients(env: Env) -> Env:
        """Whether a tensor needs a gradient is not known any more."""
        return {name: doubtful(value) for name, value in env.items()}

    @staticmethod
    def set(env: Env, target: str | None, value: Any) -> Env:
        return env if target is None else {**env, target: value}


def is_somebodys(value: Any) -> bool:
    """Whether an operator on a value may be what its class says it is."""
    return value is UNKNOWN or isinstance(value, StructType)


def unpacked(source: Any, targets: tuple[str, ...]) -> Env:
    """``a, b = source``."""
    if isinstance(source, tuple) and len(source) == len(targets):
        return dict(zip(targets, source, strict=True))
    return dict.fromkeys(targets, UNKNOWN)


def has_struct(value: Any) -> bool:
    """Whether it is a struct or has one in it."""
    return (
        any(map(has_struct, value)) if isinstance(value, tuple) else isinstance(value, StructType)
    )


def doubtful(value: Any) -> Any:
    """A value whose tensors may need a gradient."""
    if isinstance(value, TensorType) and value.dtype not in WHOLE:
        return replace(value, grad=None)
    if isinstance(value, StructType):
        return replace(value, fields=tuple((name, doubtful(each)) for name, each in value.fields))
    return tuple(map(doubtful, value)) if isinstance(value, tuple) else value


def written(value: Any, struct: str, name: str, new: Any) -> Any:
    """A value in which each struct of a class may have got a new field."""
    if isinstance(value, tuple):
        return tuple(written(each, struct, name, new) for each in value)
    if not isinstance(value, StructType):
        return value
    found = replace(
        value, fields=tuple((n, written(each, struct, name, new)) for n, each in value.fields)
    )
    if found.name != struct:
        return found
    return found.with_field(name, joined(found.field(name), new))
