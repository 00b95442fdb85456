"""Random ways through a function, on which facts of the passes are held against what happens.

A way is walked without computing anything: each operation that makes memory makes a new ``Memory``,
names and views carry it on, and a planned result overwrites whatever is planned over its bytes.
``AssertionError`` says which fact was wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.passes.liveness import Liveness
from tlmem.compiler.passes.moves import Destinations
from tlmem.compiler.passes.shape_rules import rule_of
from tlmem.compiler.passes.slots import FrameLayout, Slots
from tlmem.compiler.walking import LOOPS, defines, reads

TURNS = 3


class Memory:
    """What one run of an operation makes; ``made`` is its number, 0 for outside."""

    def __init__(self, made: int = 0) -> None:
        self.made = made


@dataclass
class Facts:
    """What is tried."""

    liveness: Liveness
    slots: Slots
    layout: FrameLayout
    destinations: Destinations


class Way:
    """One way through a numbered function."""

    def __init__(self, function: ir.Function, facts: Facts, r: Random) -> None:
        self.function, self.facts, self.r = function, facts, r
        self.values: dict[str, Any] = {each.name: Memory() for each in function.parameters}
        self.defined = {each.name: at for at, each in enumerate(function.parameters, 1)}
        self.dead: dict[str, str] = {}
        self.held: dict[int, Memory] = {}  # operation -> whose result its bytes have
        self.in_out: Memory | None = None
        spans = facts.layout.offsets
        self.bytes = {p.number: (spans[p.number], p.nbytes) for p in facts.slots.placed}
        self.slot = {p.number: p.slot for p in facts.slots.placed}
        self.intervals = {(i.name, i.defined): i for i in facts.liveness.intervals}
        self.steps = 0

    def walk(self) -> None:
        """Goes from the begin to a return."""
        self.block(self.function.body)

    # ---- ways ----

    def block(self, block: ir.Block) -> str:
        """How a block ends: ``break``, ``continue``, ``return`` or, at its end, nothing."""
        for statement in block:
            how = self.statement(statement)
            if how:
                return how
        return ""

    def statement(self, statement: ir.Statement) -> str:
        self.steps += 1
        if isinstance(statement, LOOPS):
            how = self.loop(statement)
        else:
            self.read(statement)
            if isinstance(statement, ir.If):
                how = self.enter(statement, self.r.choice(("then", "orelse")))
            elif isinstance(statement, (ir.Break, ir.Continue, ir.Return, ir.Raise)):
                return self.leave(statement)
            else:
                self.give(statement)
                how = ""
        if not how:
            self.end(self.facts.liveness.ended(statement), f"ended at {statement.number}")
        return how

    def leave(self, statement: ir.Statement) -> str:
        if isinstance(statement, ir.Return):
            self.returned(statement)
        return "return" if isinstance(statement, ir.Raise) else type(statement).__name__.lower()

    def enter(self, statement: ir.Statement, block: str) -> str:
        unneeded = self.facts.liveness.unneeded(statement, block)
        self.end(unneeded, f"unneeded in {block} of {statement.number}")
        return self.block(getattr(statement, block))

    def loop(self, loop: Any) -> str:
        if isinstance(loop, ir.For):
            self.read(loop)
            items = [self.value(each) for each in loop.operands]
        for _ in range(self.r.randint(0, TURNS)):
            if isinstance(loop, ir.While):
                self.enter(loop, "condition")
                self.needed(loop, [loop.test.name] if isinstance(loop.test, ir.Var) else [])
            else:
                self.define(loop, loop.targets[0], self.r.choice(items) if items else None)
            how = self.enter(loop, "body")
            if how == "return":
                return how
            if how == "break":
                return ""
        if isinstance(loop, ir.While):
            self.enter(loop, "condition")
        return ""

    # ---- reading ----

    def read(self, statement: ir.Statement) -> None:
        self.needed(statement, reads(statement))

    def needed(self, statement: ir.Statement, names: Any) -> None:
        """A statement reads variables: they are alive, and their memory is still theirs."""
        number = statement.number
        for name in names:
            about = f"{name} at {number}"
            assert name not in self.dead, f"{about}: {self.dead.get(name)}"
            interval = self.intervals[name, self.defined[name]]
            in_loop = isinstance(statement, ir.While)  # its test is read behind the condition
            assert in_loop or interval.first <= number <= interval.last, f"{about}: {interval}"
            assert in_loop or name in self.facts.liveness.before[number], about
            for memory in memories(self.values[name]):
                self.whole(memory, about)

    def whole(self, memory: Memory, about: str) -> None:
        """The bytes of a memory have not been given to another one."""
        if memory.made in self.bytes:
            assert self.held[memory.made] is memory, f"{about}: overwritten in its slot"
        if memory.made in self.facts.destinations.direct:
            assert self.in_out is memory, f"{about}: overwritten in out"

    # ---- giving values ----

    def give(self, statement: ir.Statement) -> None:
        if isinstance(statement, ir.Forget):
            self.values.pop(statement.target)
            return
        if isinstance(statement, ir.SetField) and isinstance(statement.source, ir.Var):
            self.kept(self.value(statement.value), f"field at {statement.number}")
            self.values[statement.source.name][statement.field] = self.value(statement.value)
            return
        if isinstance(statement, ir.InPlace):
            self.define(statement, statement.target, self.values[statement.target])
        elif isinstance(statement, ir.Unpack):
            value = self.value(statement.source)
            for name, each in zip(statement.targets, value, strict=True):
                self.define(statement, name, each)
        else:
            made = self.made(statement)
            for name in defines(statement):
                self.define(statement, name, made)

    def made(self, statement: ir.Statement) -> Any:
        """What a statement gives its target."""
        if isinstance(statement, ir.Assign):
            return self.value(statement.source)
        if isinstance(statement, ir.Op):
            return self.made_by_op(statement)
        if isinstance(statement, ir.GetField) and isinstance(statement.source, ir.Var):
            value = self.values[statement.source.name]
            return value.get(statement.field) if isinstance(value, dict) else value
        if isinstance(statement, ir.MakeStruct):
            given = dict(zip(("weight", "bias"), statement.operands, strict=False))
            given |= dict(statement.options)
            fields = {name: self.value(each) for name, each in given.items()}
            for each in fields.values():
                self.kept(each, f"struct at {statement.number}")
            return fields
        if isinstance(statement, ir.Call):
            given = [self.value(each) for each in statement.operands]
            for each in given:
                self.kept(each, f"call at {statement.number}")
            return self.r.choice([*given, Memory()])
        return None

    def made_by_op(self, op: ir.Op) -> Any:
        rule, first = rule_of(op.op), self.value(op.operands[0])
        assert rule is not None
        if first is None and rule.memory == "fresh" and not self.has_memory(op):
            return None
        how = rule.memory if rule.memory != "either" else self.r.choice(("fresh", "view"))
        if how in ("view", "same"):
            return first
        if how == "plain":
            return None
        made = Memory(op.number)
        if op.number in self.bytes:
            self.overwrite(op.number)
            self.held[op.number] = made
        if op.number in self.facts.destinations.direct:
            self.in_out = made
        return made

    def has_memory(self, op: ir.Op) -> bool:
        return any(memories(self.value(each)) for each in op.operands)

    def overwrite(self, number: int) -> None:
        """A result is computed into its bytes: whose they were loses them."""
        begin, size = self.bytes[number]
        for other in list(self.held):
            at, length = self.bytes[other]
            if at < begin + size and begin < at + length or self.slot[other] == self.slot[number]:
                del self.held[other]

    def kept(self, value: Any, about: str) -> None:
        """Somebody else holds a value from now on: it is in no memory that is used again."""
        for memory in memories(value):
            assert memory.made not in self.bytes, f"{about}: {memory.made} is in a slot"
            assert memory.made not in self.facts.destinations.direct, f"{about}: is in out"

    def returned(self, statement: ir.Return) -> None:
        value = self.value(statement.value)
        about = f"return at {statement.number}"
        for memory in memories(value):
            assert memory.made not in self.bytes, f"{about}: {memory.made} is in a slot"
        if statement.number not in self.facts.destinations.copied:
            assert self.in_out is value, f"{about}: is not in out"

    def define(self, statement: ir.Statement, name: str, value: Any) -> None:
        self.values[name], self.defined[name] = value, statement.number
        self.dead.pop(name, None)

    def end(self, names: Any, why: str) -> None:
        self.dead.update(dict.fromkeys(names, why))

    def value(self, operand: ir.Operand) -> Any:
        if isinstance(operand, ir.Var):
            return self.values.get(operand.name)
        if isinstance(operand, ir.Group):
            return [self.value(each) for each in operand.items]
        return Memory() if isinstance(operand, ir.Captured) else None


def memories(value: Any) -> list[Memory]:
    """The memories that a value looks into."""
    if isinstance(value, Memory):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [each for item in value for each in memories(item)] if isinstance(value, list) else []
