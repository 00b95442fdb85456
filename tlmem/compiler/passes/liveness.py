"""Liveness: from where to where each variable is needed, counted in statements (S10).

Covers: the variables that are live before and after each statement and at the begin of each block;
the interval of each definition; which definitions a read may see. Does not cover: memory that
several variables look into (``origins``), what follows from it (``moves``, ``slots``).

Arguments are definitions 1 to n. A variable that a loop reads and that was defined before it lives
to the end of the loop; one that a turn leaves to the next one lives for the whole loop.

Source: docs/seed-map.md, S10.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from tlmem.compiler import ir
from tlmem.compiler.passes.dataflow import Env, Flow, walked
from tlmem.compiler.walking import defines, last_number, names_in, reads, walk

Names = frozenset[str]
NONE: Names = frozenset()


class Interval(NamedTuple):
    """The life of one definition: numbers of statements, both ends inclusive.

    Attributes:
        name: the variable.
        defined: number of the statement that gives it this value; of an argument, its number.
        first: where its life begins: ``defined``, or the loop that carries it from turn to turn.
        last: its last use; ``defined`` when it is never read.
    """

    name: str
    defined: int
    first: int
    last: int


@dataclass
class Liveness:
    """What is live where.

    Attributes:
        before: number of a statement -> variables that are needed there or later.
        after: number -> variables that are needed later. What is not reached has none.
        entry: ``(number, block)`` -> variables that are needed in that block of the statement,
            ``then``, ``orelse``, ``condition`` or ``body``, or later.
        reaching: number -> for each variable the definitions it may have there.
        intervals: one for each definition, in the order of definitions.
    """

    before: dict[int, Names] = field(default_factory=dict)
    after: dict[int, Names] = field(default_factory=dict)
    entry: dict[tuple[int, str], Names] = field(default_factory=dict)
    reaching: dict[int, Env] = field(default_factory=dict)
    intervals: tuple[Interval, ...] = ()

    def is_last_use(self, number: int, name: str) -> bool:
        """Whether a variable that this statement reads is not needed behind it."""
        return name in self.before.get(number, NONE) and name not in self.after.get(number, NONE)

    def ended(self, statement: ir.Statement) -> Names:
        """Variables that are not needed behind a statement but still have a value there."""
        number = statement.number
        here = {*self.before.get(number, NONE), *defines(statement)}
        if isinstance(statement, ir.Forget):
            here.discard(statement.target)
        return frozenset(here - self.after.get(number, NONE))

    def unneeded(self, statement: ir.Statement, block: str) -> Names:
        """Variables that another block of a statement needs, or what is behind it, not this one."""
        at = statement.number
        entries = (names for (number, _), names in self.entry.items() if number == at)
        needed = NONE.union(*entries, self.after.get(at, NONE)) & self.before.get(at, NONE)
        return needed - self.entry.get((at, block), NONE)


def live(function: ir.Function) -> Liveness:
    """The liveness of a numbered function."""
    found = Liveness()
    _Backward(found).block(function.body, NONE)
    flow = reaching_definitions(function)
    found.reaching = flow.before
    found.intervals = intervals(function, found)
    return found


def text(found: Liveness) -> str:
    """The intervals, one a line, as golden files show them."""
    lines = [f"{each.name} {each.defined}: [{each.first}, {each.last}]" for each in found.intervals]
    return "\n".join([*lines, ""])


# ---- against the order of the program ----


class _Backward:
    """One walk from the end to the begin."""

    def __init__(self, found: Liveness) -> None:
        self.found = found
        self.behind: list[Names] = []  # per loop: what is live behind it
        self.heads: list[Names] = []  # and at its head

    def block(self, block: ir.Block, live: Names) -> Names:
        for statement in reversed(block):
            live = self.statement(statement, live)
        return live

    def statement(self, statement: ir.Statement, after: Names) -> Names:
        if isinstance(statement, ir.Break):
            after = self.behind[-1]
        elif isinstance(statement, ir.Continue):
            after = self.heads[-1]
        elif isinstance(statement, (ir.Return, ir.Raise)):
            after = NONE
        before = self.through(statement, after)
        self.found.before[statement.number], self.found.after[statement.number] = before, after
        return before

    def through(self, statement: ir.Statement, after: Names) -> Names:
        needed = frozenset(reads(statement))
        if isinstance(statement, ir.If):
            then = self.inner(statement, "then", after)
            return then | self.inner(statement, "orelse", after) | needed
        if isinstance(statement, (ir.For, ir.While)):
            return self.loop(statement, after)
        if isinstance(statement, ir.Forget):
            return after | {statement.target}  # it must have a value to forget
        return (after - frozenset(defines(statement))) | needed

    def inner(self, statement: ir.Statement, block: str, after: Names) -> Names:
        live = self.block(getattr(statement, block), after)
        self.found.entry[statement.number, block] = live
        return live

    def loop(self, loop: ir.For | ir.While, after: Names) -> Names:
        """Before a loop; its head is live at the end of each turn."""
        head = NONE
        while True:
            self.behind.append(after)
            self.heads.append(head)
            new = head | self.turn(loop, head, after)
            self.behind.pop()
            self.heads.pop()
            if new == head:
                break
            head = new
        return head | frozenset(reads(loop)) if isinstance(loop, ir.For) else head

    def turn(self, loop: ir.For | ir.While, head: Names, after: Names) -> Names:
        """What one turn needs at its begin, or what is behind the loop."""
        if isinstance(loop, ir.While):
            body = self.inner(loop, "body", head)
            return self.inner(loop, "condition", body | after | frozenset(names_in(loop.test)))
        kept = frozenset(reads(loop)) if loop.iterable == "items" else NONE  # the loop holds them
        return (self.inner(loop, "body", head) - frozenset(loop.targets)) | after | kept


# ---- definitions ----


def reaching_definitions(function: ir.Function) -> Flow:
    """Which definitions each variable may have: numbers, before each statement."""
    arguments = {each.name: frozenset([at]) for at, each in enumerate(function.parameters, 1)}

    def transfer(statement: ir.Statement, env: Env) -> Env:
        if isinstance(statement, ir.Forget):
            return {name: value for name, value in env.items() if name != statement.target}
        defined = frozenset([statement.number])
        return {**env, **dict.fromkeys(defines(statement), defined)}

    return walked(function, arguments, transfer, frozenset.union)


def intervals(function: ir.Function, found: Liveness) -> tuple[Interval, ...]:
    """The interval of each definition, from what is live and which definitions are seen."""
    ends: dict[tuple[int, str], set[int]] = defaultdict(set)
    for at, parameter in enumerate(function.parameters, 1):
        ends[at, parameter.name].add(at)
    for statement in walk(function.body):
        number = statement.number
        for name in defines(statement):
            ends[number, name].add(number)
        env, at_head = found.reaching.get(number, {}), carried(statement, found)
        for name in found.before[number] | at_head:
            for defined in env.get(name, ()):
                ends[defined, name].add(number)
                if name in at_head:
                    ends[defined, name].add(last_number(statement))
    return tuple(
        Interval(name, defined, min(at), max(at)) for (defined, name), at in sorted(ends.items())
    )


def carried(statement: ir.Statement, found: Liveness) -> Names:
    """The variables that each turn of a loop needs, or leaves to the next one."""
    if isinstance(statement, ir.While):
        return found.entry[statement.number, "condition"]
    if isinstance(statement, ir.For):
        return found.entry[statement.number, "body"] - frozenset(statement.targets)
    return NONE
