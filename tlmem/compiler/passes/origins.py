"""Memory: which variables look into the result of which operation, and who else may hold it.

Covers: where the memory of each variable was made, through other names, views, tuples and fields;
what escapes, so that its memory cannot be planned; from where to where memory is needed. Does not
cover: where it goes then (``slots``).

A memory is named by the number of the operation that makes it. 0 is memory from outside.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from tlmem.compiler import ir
from tlmem.compiler.passes.abstract import UNKNOWN, TensorType
from tlmem.compiler.passes.dataflow import Env, walked
from tlmem.compiler.passes.liveness import Liveness, carried
from tlmem.compiler.passes.shape_rules import (
    FRESH,
    PLAIN,
    SAME,
    VIEW,
    has_tensor,
    is_open,
    rule_of,
    tensors_in,
)
from tlmem.compiler.passes.shapes import Shapes, has_struct, is_somebodys
from tlmem.compiler.walking import defines, last_number, names_in, operands_of, reads, walk

Memories = frozenset[int]
NONE: Memories = frozenset()
OUTSIDE: Memories = frozenset([0])

RETURNED = "returned"
IN_STRUCT = "stored in a struct"
GIVEN = "given to a call that may keep it"
ON_TAPE = "recorded on a tape"
IN_CONTAINER = "stored in a container"
RAISED = "raised"
KEPT = "held by somebody else afterwards"


class Life(NamedTuple):
    """From where to where a memory is needed, in statements, both ends inclusive."""

    memory: int
    first: int
    last: int


@dataclass
class Origins:
    """What was found.

    Attributes:
        before: number of a statement -> for each variable the memories it may look into.
        escaped: memory -> who else may hold it. What is not in it ends with its variables.
        shared: memories that something else than the caller may hold.
        objects: as ``before``, but views do not count: of which operations a variable may be the
            very result.
        lives: one for each memory that an operation makes, in the order of the program.
    """

    before: dict[int, Env] = field(default_factory=dict)
    escaped: dict[int, str] = field(default_factory=dict)
    shared: set[int] = field(default_factory=set)
    objects: dict[int, Env] = field(default_factory=dict)
    lives: tuple[Life, ...] = ()


def origins(function: ir.Function, shapes: Shapes, liveness: Liveness) -> Origins:
    """The memories of a numbered function."""
    pass_ = _Pass(shapes)
    arguments = {each.name: OUTSIDE for each in function.parameters}
    flow = walked(function, arguments, pass_.transfer, frozenset.union)
    objects = walked(function, arguments, _Pass(shapes, views=False).transfer, frozenset.union)
    found = Origins(before=flow.before, objects=objects.before)
    for statement in walk(function.body):
        env = flow.before.get(statement.number)
        if env is not None:
            for memory, why in pass_.escapes(statement, env):
                found.escaped.setdefault(memory, why)
                if why != RETURNED:
                    found.shared.add(memory)
    found.lives = lives(function, liveness, flow.before)
    return found


def of(operand: ir.Operand, env: Env) -> Memories:
    """The memories that an operand may look into."""
    if isinstance(operand, ir.Captured):
        return OUTSIDE
    return NONE.union(*(env.get(name, NONE) for name in names_in(operand)))


def lives(function: ir.Function, liveness: Liveness, before: dict[int, Env]) -> tuple[Life, ...]:
    """The life of each memory: it is needed where a variable is that may look into it."""
    ends: dict[int, set[int]] = defaultdict(set)
    for statement in walk(function.body):
        number = statement.number
        if isinstance(statement, ir.Op):
            ends[number].add(number)
        env, at_head = before.get(number, {}), carried(statement, liveness)
        for name in liveness.before[number] | at_head:
            for memory in env.get(name, NONE):
                ends[memory].add(number)
                if name in at_head:
                    ends[memory].add(last_number(statement))
    ends.pop(0, None)
    return tuple(Life(memory, min(at), max(at)) for memory, at in sorted(ends.items()))


class _Pass:
    """What each statement does to the memories of the variables."""

    def __init__(self, shapes: Shapes, views: bool = True) -> None:
        self.shapes, self.views = shapes, views

    def type_of(self, operand: ir.Operand, number: int) -> object:
        """The abstract value of an operand at a statement."""
        if isinstance(operand, ir.Var):
            return self.shapes.before.get(number, {}).get(operand.name, UNKNOWN)
        if isinstance(operand, ir.Group):
            return tuple(self.type_of(item, number) for item in operand.items)
        return operand.value if isinstance(operand, ir.Const) else UNKNOWN

    # ---- what looks into what ----

    def transfer(self, statement: ir.Statement, env: Env) -> Env:
        if isinstance(statement, ir.Forget):
            return {name: value for name, value in env.items() if name != statement.target}
        if isinstance(statement, ir.Unpack) and isinstance(statement.source, ir.Group):
            items = statement.source.items
            if len(items) == len(statement.targets):
                parts = [of(item, env) for item in items]
                return {**env, **dict(zip(statement.targets, parts, strict=True))}
        made = self.made(statement, env)
        return {**env, **{name: made.get(name, made[""]) for name in defines(statement)}}

    def made(self, statement: ir.Statement, env: Env) -> dict[str, Memories]:
        """The memories of what a statement defines; under "" those of all its targets."""
        number, read = statement.number, NONE.union(*(env.get(n, NONE) for n in reads(statement)))
        values = self.shapes.values.get(number, {})
        plain = {name: NONE for name, value in values.items() if is_plain(value)}
        if isinstance(statement, ir.Op):
            return {"": self.of_op(statement, env), **plain}
        if isinstance(statement, (ir.Call, ir.MakeStruct)):
            return {"": read | OUTSIDE, **plain}
        if isinstance(statement, ir.GetField) and not self.views:
            return {"": OUTSIDE, **plain}
        if isinstance(statement, ir.InPlace) and self.is_tensor(ir.Var(statement.target), number):
            return {"": env.get(statement.target, NONE)}
        outside = (
            OUTSIDE if any(isinstance(o, ir.Captured) for o in operands_of(statement)) else NONE
        )
        return {"": read | outside, **plain}

    def of_op(self, op: ir.Op, env: Env) -> Memories:
        """The memories of the result of an operation."""
        rule, all_read = rule_of(op.op), NONE.union(*(env.get(n, NONE) for n in reads(op)))
        out = dict(op.options).get("out", ir.Const(None))
        if rule is None or self.is_somebodys(op):
            return all_read | OUTSIDE
        if out != ir.Const(None):
            return of(out, env) | OUTSIDE
        if rule.memory == FRESH:
            return frozenset([op.number])
        if rule.memory == PLAIN:
            return NONE
        first = of(op.operands[0], env) if op.operands else NONE
        if rule.memory == VIEW:
            return first if self.views else OUTSIDE
        return first if rule.memory == SAME else first | OUTSIDE

    def is_tensor(self, operand: ir.Operand, number: int) -> bool:
        return isinstance(self.type_of(operand, number), TensorType)

    def is_somebodys(self, op: ir.Op) -> bool:
        """Whether an operation may be what the class of an operand says it is."""
        types = [self.type_of(each, op.number) for each in op.operands]
        if op.form == "method":
            return not isinstance(types[0], TensorType)
        captured = [isinstance(each, ir.Captured) for each in op.operands]
        unknown = [is_somebodys(t) and not c for t, c in zip(types, captured, strict=True)]
        return op.form == "operator" and any(unknown)

    # ---- who else may hold it ----

    def escapes(self, statement: ir.Statement, env: Env) -> list[tuple[int, str]]:
        """The memories that something else may hold after a statement, and why."""
        return [
            (memory, why)
            for operand, why in self.given_away(statement)
            for memory in of(operand, env) - OUTSIDE
        ]

    def given_away(self, statement: ir.Statement) -> list[tuple[ir.Operand, str]]:
        """The operands that something may hold after a statement."""
        everything = operands_of(statement)
        if isinstance(statement, ir.Op):
            return self.given_by_op(statement)
        if isinstance(statement, ir.Return):
            return [(statement.value, RETURNED)]
        if isinstance(statement, ir.Call):
            return [(each, GIVEN) for each in everything]
        if isinstance(statement, ir.MakeStruct):
            return [(each, IN_STRUCT) for each in everything]
        if isinstance(statement, ir.SetField):
            return [(statement.value, IN_STRUCT)]
        if isinstance(statement, ir.Raise):
            return [(each, RAISED) for each in everything]
        if isinstance(statement, ir.SetItem) and not self.is_tensor(
            statement.source, statement.number
        ):
            return [(statement.value, IN_CONTAINER)]
        if isinstance(statement, ir.InPlace):
            return self.given_in_place(statement)
        return []

    def given_by_op(self, op: ir.Op) -> list[tuple[ir.Operand, str]]:
        rule, everything = rule_of(op.op), operands_of(op)
        if rule is None or self.is_somebodys(op):
            return [(each, GIVEN) for each in everything]
        if rule.keeps:
            return [(each, KEPT) for each in everything]
        if rule.differentiable and self.may_be_recorded(op):
            return [(each, ON_TAPE) for each in everything]
        return []

    def given_in_place(self, statement: ir.InPlace) -> list[tuple[ir.Operand, str]]:
        target = ir.Var(statement.target)
        if self.is_tensor(target, statement.number):
            return []
        return [(target, GIVEN), (statement.value, GIVEN)]

    def may_be_recorded(self, op: ir.Op) -> bool:
        """Whether an operation may leave something on a tape, which keeps its operands."""
        values = self.shapes.values.get(op.number, {})
        made = values.get(op.target or "")
        if isinstance(made, TensorType) and made.grad is False:
            return False
        if made is not None and is_plain(made):
            return False
        types = [self.type_of(each, op.number) for each in operands_of(op)]
        return any(map(is_open, types)) or any(t.grad is not False for t in tensors_in(types))


def is_plain(value: object) -> bool:
    """Whether a value surely looks into no memory."""
    return not (has_tensor(value) or is_open(value) or has_struct(value))
