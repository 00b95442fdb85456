"""Which ownership operations a policy asks for, and which it leaves out and why.

Each definition of a variable takes something and lets the old value go, in this order, so that
``x = x`` is harmless (S6). What an operation made is the scope's already; a second name acquires
(S5), or takes the count over when the first one is not read again (S21). Arguments and captured
names are borrowed (S19). What is returned leaves the scope with its count (S18, S30).

The policy ``default`` has drops only: a variable holds a tensor as any name of Python does, and a
tensor is freed behind its last use, not at the end of the function (B15).

Covers: the operations and their reasons. Does not cover: what the operations do
(``backend.activation``), how the reasons are shown (``explain``).

Source: docs/seed-map.md, B15, S5, S6, S16 to S21, S23, S30, S31.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.passes.abstract import UNKNOWN, PlainType, TensorType, is_known
from tlmem.compiler.passes.liveness import Liveness
from tlmem.compiler.passes.moves import last_uses
from tlmem.compiler.passes.shape_rules import PLAIN, rule_of
from tlmem.compiler.passes.shapes import Shapes
from tlmem.compiler.passes.slots import Slots
from tlmem.compiler.policies import OVER_RETAINED, PROMOTE, Policy
from tlmem.compiler.walking import BLOCKS, LEAVING, defines, names_in, operands_of, reads, walk

HOLDING = (ir.Op, ir.Call, ir.MakeStruct)


@dataclass(frozen=True, slots=True)
class Note:
    """One ownership operation, done or left out.

    Attributes:
        number: of the statement.
        line: of the source, from 1.
        name: the variable.
        operation: ``acquire``, ``release``, ``register``, ``unregister``, ``promote``, ``move``,
            ``slot``, ``drop``, ``allocate`` or ``clear gradients``.
        done: whether it is done.
        reason: why it is left out, or what it is for.
    """

    number: int
    line: int
    name: str
    operation: str
    done: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Owning:
    """The function with its ownership operations, and the notes in the order of the program."""

    function: ir.Function
    notes: tuple[Note, ...]


def with_ownership(
    function: ir.Function,
    policy: Policy,
    shapes: Shapes,
    liveness: Liveness,
    slots: Slots,
    direct: frozenset[int] = frozenset(),
) -> Owning:
    """The ownership operations of a numbered function under a policy that says them.

    Args:
        slots: results that are in slots of the frame.
        direct: operations that compute into the caller's ``out``.
    """
    return _Pass(function, policy, shapes, liveness, slots, direct).made()


class _Pass:
    """One walk over the function."""

    def __init__(
        self,
        function: ir.Function,
        policy: Policy,
        shapes: Shapes,
        liveness: Liveness,
        slots: Slots,
        direct: frozenset[int],
    ) -> None:
        self.function, self.policy, self.shapes = function, policy, shapes
        self.liveness, self.slots, self.direct = liveness, slots, direct
        self.placed = {each.number: each for each in slots.placed}
        self.plain = plain_names(function, shapes)
        self.arguments = range(1, len(function.parameters) + 1)
        self.parameters = {each.name for each in function.parameters}
        uses = last_uses(function, liveness) if policy.moves else ()
        self.moved = {(each.number, each.name) for each in uses}
        statements = list(walk(function.body))
        self.changes_fields = any(isinstance(s, ir.SetField | ir.Call) for s in statements)
        self.lent: set[int] = set()  # reads of fields that borrow
        self.notes: list[Note] = []

    def made(self) -> Owning:
        for at, parameter in enumerate(self.function.parameters, 1):
            if parameter.name not in self.plain:
                self.left_out(ir.Statement(number=at), parameter.name, "acquire", "borrowed")
        function = self.function
        if self.policy.ends_at_last_use:
            function = with_drops(function, self.liveness, self.shapes)
        body = self.block(function.body)
        return Owning(replace(function, body=body), tuple(self.notes))

    # ---- notes ----

    def note(self, at: ir.Statement, name: str, operation: str, reason: str = "") -> None:
        self.notes.append(Note(at.number, at.place.line, name, operation, True, reason))

    def left_out(self, at: ir.Statement, name: str, operation: str, reason: str) -> None:
        self.notes.append(Note(at.number, at.place.line, name, operation, False, reason))

    # ---- statements ----

    def block(self, block: ir.Block, first: Iterable[ir.Statement] = ()) -> ir.Block:
        made = list(first)
        for statement in block:
            if isinstance(statement, ir.Drop):
                made += self.ended(statement)
                continue
            if not isinstance(statement, ir.While):
                made += self.retained(statement)
            made += self.before(statement)
            made.append(self.with_blocks(statement))
            if not isinstance(statement, ir.For):
                made += self.taken(statement)
        return tuple(made)

    def with_blocks(self, statement: ir.Statement) -> ir.Statement:
        inner: dict[str, Any] = {
            name: self.block(getattr(statement, name), self.turn(statement, name))
            for name in BLOCKS.get(type(statement), ())
        }
        if isinstance(statement, ir.While):  # its test is read behind the condition
            inner["condition"] += tuple(self.retained(statement))
        return replace(statement, **inner) if inner else statement

    def turn(self, statement: ir.Statement, block: str) -> list[ir.Statement]:
        """What a loop variable takes at the begin of each turn."""
        if isinstance(statement, ir.For) and block == "body" and statement.iterable == "items":
            return self.taken(statement)
        return []

    def retained(self, statement: ir.Statement) -> list[ir.Statement]:
        """The bug: each read acquires (S23)."""
        if not self.policy.over_retains:
            return []
        names = [each for each in dict.fromkeys(reads(statement)) if each not in self.plain]
        for name in names:
            self.note(statement, name, "acquire", f"for {OVER_RETAINED}: each read does")
        return [
            ir.Acquire(name, OVER_RETAINED, place=statement.place, number=statement.number)
            for name in names
        ]

    def before(self, statement: ir.Statement) -> list[ir.Statement]:
        """What must be said before a statement."""
        here: dict[str, Any] = {"place": statement.place, "number": statement.number}
        placed = self.placed.get(statement.number)
        if placed is not None and isinstance(statement, ir.Op):
            others = dict.fromkeys(self.slots.neighbours(statement.number))
            shared = f", shared with {', '.join(others)}" if others else ""
            self.note(statement, placed.name, "slot", f"slot {placed.slot}{shared}")
            return [ir.Slot(placed.name, placed.slot, 0, placed.nbytes, **here)]
        if isinstance(statement, ir.MakeStruct | ir.SetField):
            return self.into_fields(statement, here)
        if isinstance(statement, ir.Return):
            return self.handed_off(statement, here)
        return []

    def into_fields(self, statement: Any, here: dict[str, Any]) -> list[ir.Statement]:
        """Fields acquire what they are given (S16), or take it over (C1)."""
        made: list[ir.Statement] = []
        values = [statement.value] if isinstance(statement, ir.SetField) else operands_of(statement)
        into = getattr(statement, "target", None) or "field"
        for name in dict.fromkeys(n for value in values for n in names_in(value)):
            if name in self.plain:
                continue
            if (statement.number, name) in self.moved:
                self.left_out(statement, name, "acquire", f"moved into {into} at its last use")
                made.append(ir.Move(name, into, **here))
            else:
                self.note(statement, name, "acquire", f"for a field of {into}")
        return made

    def handed_off(self, statement: ir.Return, here: dict[str, Any]) -> list[ir.Statement]:
        """What a return gives to the caller."""
        kind = ir.Promote if self.policy.hand_off == PROMOTE else ir.Unregister
        made: list[ir.Statement] = []
        for name in dict.fromkeys(names_in(statement.value)):
            if name in self.plain:
                continue
            origins = self.reaching(statement, name)
            if origins and origins <= self.direct:
                reason = "destination passed: it is the caller's out"
                self.left_out(statement, name, self.policy.hand_off, reason)
            elif origins and origins <= set(self.arguments):
                reason = "borrowed: it is the caller's"
                self.left_out(statement, name, self.policy.hand_off, reason)
            else:
                self.note(statement, name, self.policy.hand_off, "the caller registers it")
                made.append(kind(name, **here))
        return made

    def taken(self, statement: ir.Statement) -> list[ir.Statement]:
        """What the variables that a statement defines take, and what they let go of."""
        made: list[ir.Statement] = []
        names = [each for each in dict.fromkeys(defines(statement)) if each not in self.plain]
        for name in names:
            taking = self.taking(statement, name)
            made += [taking] if taking is not None else []
        for name in names:  # behind all of them: in a swap one has what the other lets go of
            made += self.letting_go(statement, name)
        if isinstance(statement, ir.Forget):
            made += self.letting_go(statement, statement.target)
        return made

    def taking(self, at: ir.Statement, name: str) -> ir.Statement | None:
        """How a variable takes its new value; None when nothing is counted."""
        here: dict[str, Any] = {"place": at.place, "number": at.number}
        if isinstance(at, HOLDING):
            return self.from_operation(at, name, here)
        if isinstance(at, ir.Assign):
            return self.from_name(at, name, here)
        if isinstance(at, ir.GetField):
            return self.from_field(at, name, here)
        if isinstance(at, ir.InPlace):
            found = self.shapes.before.get(at.number, {}).get(name)
            if isinstance(found, TensorType):
                self.left_out(at, name, "register", "written in place")
                return None
            self.note(at, name, "register", "")
            return ir.Register(name, **here)
        if isinstance(at, ir.Plain):
            return None
        self.note(at, name, "acquire", f"for {name}")
        return ir.Acquire(name, name, **here)

    def from_operation(self, at: Any, name: str, here: dict[str, Any]) -> ir.Statement | None:
        if at.number in self.placed:
            self.left_out(at, name, "register", "the frame owns its slot")
            return None
        if at.number in self.direct:
            self.left_out(at, name, "register", "destination passed: it is the caller's out")
            return None
        rule = rule_of(at.op) if isinstance(at, ir.Op) else None
        if rule is not None and rule.memory == PLAIN:
            return None
        self.note(at, name, "register", "the scope of this call owns it")
        return ir.Register(name, **here)

    def from_name(self, at: ir.Assign, name: str, here: dict[str, Any]) -> ir.Statement | None:
        source = at.source
        if isinstance(source, ir.Const):
            return None
        if not isinstance(source, ir.Var):
            self.note(at, name, "acquire", f"for {name}")
            return ir.Acquire(name, name, **here)
        if source.name == name:
            self.left_out(at, name, "acquire", "it has it already")
            return None
        origins = self.reaching(at, source.name)
        if origins and origins <= self.placed.keys() | self.direct:
            self.left_out(at, source.name, "acquire", "its memory is not the scope's to count")
            return None
        if (at.number, source.name) in self.moved:
            self.left_out(at, source.name, "acquire", f"moved to {name} at its last use")
            self.left_out(at, source.name, "release", f"moved to {name} at its last use")
            return ir.Move(source.name, name, **here)
        self.note(at, source.name, "acquire", f"for {name}")
        return ir.Acquire(source.name, name, **here)

    def from_field(self, at: ir.GetField, name: str, here: dict[str, Any]) -> ir.Statement | None:
        """A field is borrowed while nothing here can overwrite it or end what it is of."""
        source = names_in(at.source)
        lasting = not source or self.reaching(at, source[0]) <= set(self.arguments)
        if lasting and not self.changes_fields and at.field != "grad":
            self.left_out(at, name, "acquire", "borrowed: nothing here can end it")
            self.lent.add(at.number)
            return None
        self.note(at, name, "acquire", f"for {name}: the field may change while it is needed")
        return ir.Register(name, **here) if at.field == "T" else ir.Acquire(name, name, **here)

    def letting_go(self, at: ir.Statement, name: str) -> list[ir.Statement]:
        """The release of the value that a variable had before."""
        if name in self.plain or (isinstance(at, ir.InPlace) and self.is_tensor(at, name)):
            return []
        if isinstance(at, ir.Assign) and at.source == ir.Var(name):
            return []
        origins = self.reaching(at, name)
        if not origins:
            return []
        if origins <= set(self.arguments):
            self.left_out(at, name, "release", "borrowed: the old value is the caller's")
            return []
        if origins <= self.placed.keys() | self.direct:
            return []
        self.note(at, name, "release", "it gets another value")
        return [ir.Release(name, "old value", place=at.place, number=at.number)]

    def ended(self, drop: ir.Drop) -> list[ir.Statement]:
        """The function's own count goes behind the last use (S31)."""
        if drop.name in self.plain or (drop.number, drop.name) in self.moved:
            return []
        made = {*self.placed, *self.direct, *self.lent}
        defined = {s.number for s in walk(self.function.body) if drop.name in defines(s)}
        if defined and defined <= made:
            return []
        self.note(drop, drop.name, "release", "its last use is past")
        return [ir.Release(drop.name, safe=True, place=drop.place, number=drop.number)]

    # ---- facts ----

    def reaching(self, at: ir.Statement, name: str) -> set[int]:
        """The definitions that a variable may have before a statement."""
        return set(self.liveness.reaching.get(at.number, {}).get(name, ()))

    def is_tensor(self, at: ir.Statement, name: str) -> bool:
        return isinstance(self.shapes.before.get(at.number, {}).get(name), TensorType)


# ---- drops: all that the policy ``default`` needs ----


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
