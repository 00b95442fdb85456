"""Code for the policies that say who owns what: each call has a scope, each operation is a call of
its activation.

Covers: emission. Does not cover: which operations there are (``passes.ownership``), what they do
(``activation``).
"""

from __future__ import annotations

import ast
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.backend import nodes
from tlmem.compiler.backend.activation import entering
from tlmem.compiler.backend.destination import into_out
from tlmem.compiler.backend.emitting import Emitter
from tlmem.compiler.backend.nodes import name, placed
from tlmem.compiler.passes.shapes import Shapes
from tlmem.compiler.passes.slots import Slots
from tlmem.compiler.policies import OVER_RETAINED, PROMOTE, Policy
from tlmem.compiler.walking import names_in

OWN, ENTER, OUT = "%own", "%enter", "%out"


class OwningEmitter(Emitter):
    """Writes one specialisation under a policy that says ownership."""

    def __init__(
        self,
        function: ir.Function,
        policy: Policy,
        shapes: Shapes,
        slots: Slots,
        direct: frozenset[int],
        with_out: bool,
    ) -> None:
        super().__init__(function)
        self.nestable = frozenset()  # each value that is counted needs a name
        self.policy, self.shapes, self.with_out = policy, shapes, with_out
        self.sizes, self.direct = slots.sizes, direct
        self.placed = {each.number: each for each in slots.placed}
        self._taking: set[tuple[int, str]] = set()

    def body(self) -> list[ast.stmt]:
        """The statements of the function in their scope."""
        inner = super().body()
        slots = len(self.sizes) if self.policy.has_slots else None
        made = entering(self.function.name, slots, self.policy.hand_off == PROMOTE)
        entered = nodes.call(self.helper(ENTER, made))
        item = ast.withitem(entered, nodes.stored(OWN))
        return [placed(ast.With([item], inner), ir.Place(self.function.first_line))]

    def own(self, doing: str, *given: ast.expr) -> ast.Call:
        """A call of the activation."""
        return ast.Call(ast.Attribute(name(OWN), doing, ast.Load()), list(given), [])

    def say(self, at: ir.Statement, doing: str, *given: ast.expr) -> None:
        """Writes one."""
        self.settle()
        self.add(ast.Expr(self.own(doing, *given)), at.place)

    # ---- ownership operations ----

    def owned(self, statement: ir.Owned) -> None:
        """Writes an ownership operation."""
        variable, key = statement.name, ast.Constant(statement.name)
        if isinstance(statement, ir.Acquire):
            if statement.holder == OVER_RETAINED:
                self.say(statement, "over_retain", name(variable))
            else:
                self.say(statement, "acquire", ast.Constant(statement.holder), name(variable))
            self._taking.add((statement.number, statement.holder))
        elif isinstance(statement, ir.Register):
            self.say(statement, "register", key, name(variable))
            self._taking.add((statement.number, variable))
        elif isinstance(statement, ir.Release):
            kept = int((statement.number, variable) in self._taking and not statement.safe)
            self.say(statement, "release", key, *([ast.Constant(kept)] if kept else []))
        elif isinstance(statement, ir.Move):
            self._move(statement)
        elif isinstance(statement, ir.Promote | ir.Unregister):
            if not self.with_out:
                self.say(statement, "give", name(variable))
        elif not isinstance(statement, ir.Slot):
            super().owned(statement)

    def _move(self, statement: ir.Move) -> None:
        key = ast.Constant(statement.name)
        if (statement.number, "struct") in self._taking:
            self.say(statement, "move_into", key, name(statement.name))
            return
        target = ast.Constant(statement.target)
        self.say(statement, "move", key, target, name(statement.name))
        self._taking.add((statement.number, statement.target))

    def block(self, block: ir.Block) -> list[ast.stmt]:
        """The statements of a block; says which moves go into fields."""
        for each in block:
            if isinstance(each, ir.MakeStruct | ir.SetField):
                self._taking.add((each.number, "struct"))
        return super().block(block)

    # ---- operations ----

    def op(self, statement: ir.Op) -> None:
        """An operation, into its slot or the caller's ``out`` where that was decided."""
        found = self.placed.get(statement.number)
        if found is None and statement.number not in self.direct:
            super().op(statement)
            return
        made = self.shapes.tensor(statement.number, statement.target or "")
        assert made is not None
        given, options = self.arguments(statement)
        if found is None:
            memory: ast.expr = name(OUT)
        else:
            known = [found.slot, self.sizes[found.slot], made.shape, made.dtype]
            memory = self.own("slot", *map(nodes.constant, known))
        called = ast.Call(
            self.operation(statement.op), given, [*options, ast.keyword("out", memory)]
        )
        self.define(statement.target, called, statement.place)

    def operation(self, op: str) -> ast.expr:
        """The public function of an operation."""
        import tlmem

        return self.helper(f"%op_{op}", getattr(tlmem, op))

    def emit(self, statement: ir.Statement) -> None:
        """Writes one statement; what puts values into something says so first."""
        if isinstance(statement, ir.MakeStruct):
            given, options = self.arguments(statement)
            made = ast.Call(nodes.path(statement.maker.path), given, options)
            self.define(statement.target, self.own("made", made), statement.place)
        elif isinstance(statement, ir.SetField | ir.SetItem):
            self._stored(statement)
        else:
            if isinstance(statement, ir.Call):
                self._lent(statement)
            super().emit(statement)

    def _stored(self, statement: ir.SetField | ir.SetItem) -> None:
        """``source.field = value``: what is not a struct of the core holds by its handles."""
        value, source = self.trees([statement.value, statement.source])
        self.settle()
        if isinstance(statement, ir.SetField):
            target: ast.expr = ast.Attribute(source, statement.field, ast.Store())
            if statement.is_item:
                target = ast.Subscript(source, ast.Constant(statement.field), ast.Store())
        else:
            (key,) = self.trees([statement.key])
            target = ast.Subscript(source, key, ast.Store())
        lent = self.own("lend", source, value) if names_in(statement.value) else value
        self.add(ast.Assign([target], lent), statement.place)

    def _lent(self, statement: ir.Call) -> None:
        """What is not compiled may keep its arguments. Whether it is shows when it is called: a
        name may mean another function by then."""
        values = [*statement.operands, *(value for _, value in statement.options)]
        if not any(map(names_in, values)):
            return
        function, *rest = self.trees([statement.function, *values])
        group = ast.Tuple(rest, ast.Load())
        if statement.method:
            method = ast.Constant(statement.method)
            self.say(statement, "lend_method", function, method, group)
        else:
            self.say(statement, "lend_to", function, group)

    # ---- results ----

    def returned(self, statement: ir.Return) -> None:
        """A return; into the destination of the caller when there is one."""
        if not self.with_out:
            super().returned(statement)
            return
        (tree,) = self.trees([statement.value])
        self.settle()
        made: Any = nodes.call(self.helper("%into_out", into_out), tree, name(OUT))
        self.add(ast.Return(made), statement.place)
