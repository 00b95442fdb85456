"""Statements of the IR become statements of Python that do what the program wrote.

Covers: every statement, temporaries as parts of expressions. Does not cover: memory that was
planned (``arrays``), ownership operations (a policy's own emitter overrides ``owned``).

A temporary that is defined once and read once, in the same block, need not be a variable: Python
keeps it on its stack and lets go of it where it is consumed. What is not consumed in the order of
the stack becomes a variable.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable
from functools import singledispatchmethod
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.backend import nodes
from tlmem.compiler.backend.nodes import name, placed
from tlmem.compiler.walking import blocks_of, defines, is_temporary, names_in, reads, walk
from tlmem.runtime.autograd.tape import clear_grads

CLEAR_GRADS = "%clear_grads"
LEAVING = (ast.Return, ast.Raise, ast.Break, ast.Continue)
NESTABLE = (ir.Op, ir.Call, ir.Plain, ir.GetField, ir.MakeStruct, ir.Assign)


class _Dispatched(singledispatchmethod):
    """Without the cache of early releases of Python 3.13, which keeps every instance alive for good
    (CPython issue 127750; seen on 3.13.0)."""

    def __get__(self, instance: Any, owner: Any = None) -> Callable[..., None]:
        def call(statement: ir.Statement) -> None:
            self.dispatcher.dispatch(type(statement)).__get__(instance, owner)(statement)

        return call


class Emitter:
    """Writes the body of one function.

    Attributes:
        helpers: objects that the code reads by names that no program has, such as ``%slice``.
    """

    def __init__(self, function: ir.Function) -> None:
        self.function = function
        self.nestable = nestable(function)
        self.helpers: dict[str, Any] = {"%slice": slice}
        self._pending: list[tuple[str, ast.expr, ir.Place]] = []
        self._late: dict[str, ast.stmt] = {}
        self._out: list[ast.stmt] = []
        self._latches: list[bool] = []

    def helper(self, called: str, value: Any) -> ast.Name:
        """The name of an object that the code needs."""
        self.helpers[called] = value
        return name(called)

    # ---- blocks ----

    def body(self) -> list[ast.stmt]:
        """The statements of the whole function."""
        return self.block(self.function.body)

    def block(self, block: ir.Block) -> list[ast.stmt]:
        """The statements of a block, ``pass`` for none."""
        outer = (self._out, self._pending, self._late)
        self._out, self._pending, self._late = [], [], {}
        for statement in block:
            self.emit(statement)
        self._flush()
        self._out.extend(self._late.values())
        made, (self._out, self._pending, self._late) = self._out, outer
        return made or [placed(ast.Pass(), ir.NOWHERE)]

    def add(self, statement: ast.stmt, place: ir.Place) -> None:
        """Writes a statement, and then what waited for it."""
        self._out.append(placed(statement, place))
        if not isinstance(statement, LEAVING):
            self._out.extend(self._late.values())
        self._late.clear()

    def late(self, variable: str, statement: ast.stmt, place: ir.Place) -> None:
        """Writes a statement about a variable as soon as what is pending has been computed, unless
        that gives the variable another value."""
        if self._pending:
            self._late[variable] = placed(statement, place)
        else:
            self.add(statement, place)

    def _flush(self) -> None:
        """What waits to become part of an expression becomes variables."""
        pending, self._pending = self._pending, []
        for target, expression, place in pending:
            self._out.append(placed(nodes.assign(target, expression), place))

    # ---- operands ----

    def take(self, names: list[str]) -> dict[str, ast.expr]:
        """What stands for the temporaries in an expression: what is pending, or their names."""
        waiting = [each for each, _, _ in self._pending]
        wanted = [each for each in names if each in waiting]
        if not wanted:
            return {}
        if waiting[len(waiting) - len(wanted) :] != wanted:
            self._flush()
            return {}
        taken = {each: tree for each, tree, _ in self._pending[-len(wanted) :]}
        del self._pending[-len(wanted) :]
        return taken

    def trees(self, operands: list[ir.Operand]) -> list[ast.expr]:
        """Operands as expressions."""
        taken = self.take([each for operand in operands for each in names_in(operand)])
        return [self._tree(operand, taken) for operand in operands]

    def _tree(self, operand: ir.Operand, taken: dict[str, ast.expr]) -> ast.expr:
        if isinstance(operand, ir.Var):
            return taken.get(operand.name) or name(operand.name)
        if isinstance(operand, ir.Captured):
            return nodes.path(operand.path)
        if isinstance(operand, ir.Const):
            return nodes.constant(operand.value)
        items = [self._tree(item, taken) for item in operand.items]
        kind = ast.List if operand.kind == "list" else ast.Tuple
        return kind(items, ast.Load())

    def arguments(self, statement: Any) -> tuple[list[ast.expr], list[ast.keyword]]:
        """Operands and options as expressions."""
        options = [value for _, value in statement.options]
        made = self.trees([*statement.operands, *options])
        given = made[: len(statement.operands)]
        named = zip(statement.options, made[len(given) :], strict=True)
        return given, [ast.keyword(key, value) for (key, _), value in named]

    def settle(self) -> None:
        """Before a statement that is not an expression: what still waits is computed first."""
        self._flush()

    # ---- values ----

    def define(self, target: str | None, expression: ast.expr, place: ir.Place) -> None:
        """Gives a name a value, now or as part of the expression that reads it."""
        placed(expression, place)
        if target is None:
            self._flush()
            self.add(ast.Expr(expression), place)
        elif target in self.nestable:
            self._pending.append((target, expression, place))
        else:
            self._flush()
            self._late.pop(target, None)
            self.add(nodes.assign(target, expression), place)

    @_Dispatched
    def emit(self, statement: ir.Statement) -> None:
        """Writes one statement."""
        raise TypeError(f"no way to write {type(statement).__name__}")

    @emit.register
    def _(self, statement: ir.Op) -> None:
        self.op(statement)

    def op(self, statement: ir.Op) -> None:
        """Writes an operation as the program does."""
        given, options = self.arguments(statement)
        self.define(statement.target, self.written(statement, given, options), statement.place)

    def written(
        self, statement: ir.Op, given: list[ast.expr], options: list[ast.keyword]
    ) -> ast.expr:
        """An operation in the form in which the program wrote it."""
        if statement.form == "method":
            function = ast.Attribute(given[0], statement.op, ast.Load())
            return ast.Call(function, given[1:], options)
        if statement.form == "function":
            return ast.Call(nodes.path(statement.callee), given, options)
        return nodes.operator(statement.op, given)

    @emit.register
    def _(self, statement: ir.Call) -> None:
        options = [value for _, value in statement.options]
        function, *rest = self.trees([statement.function, *statement.operands, *options])
        given, values = rest[: len(statement.operands)], rest[len(statement.operands) :]
        named = zip(statement.options, values, strict=True)
        keywords = [ast.keyword(key, value) for (key, _), value in named]
        if statement.method:
            function = ast.Attribute(function, statement.method, ast.Load())
        self.define(statement.target, ast.Call(function, given, keywords), statement.place)

    @emit.register
    def _(self, statement: ir.MakeStruct) -> None:
        given, options = self.arguments(statement)
        made = ast.Call(nodes.path(statement.maker.path), given, options)
        self.define(statement.target, made, statement.place)

    @emit.register
    def _(self, statement: ir.Plain) -> None:
        expression = copy.deepcopy(statement.expression)
        order = [each.id for each in _in_order(expression) if each.id in statement.reads]
        taken = self.take(order)
        if taken:
            expression = _Replacer(taken).visit(expression)
        self.define(statement.target, expression, statement.place)

    @emit.register
    def _(self, statement: ir.GetField) -> None:
        self.field(statement)

    def field(self, statement: ir.GetField) -> None:
        """Writes the read of a field."""
        (source,) = self.trees([statement.source])
        self.define(statement.target, _field(statement, source, ast.Load()), statement.place)

    @emit.register
    def _(self, statement: ir.Assign) -> None:
        (source,) = self.trees([statement.source])
        self.define(statement.target, source, statement.place)

    # ---- what changes something ----

    @emit.register
    def _(self, statement: ir.Unpack) -> None:
        (source,) = self.trees([statement.source])
        self.settle()
        for each in statement.targets:
            self._late.pop(each, None)
        targets = ast.Tuple([nodes.stored(each) for each in statement.targets], ast.Store())
        self.add(ast.Assign([targets], source), statement.place)

    @emit.register
    def _(self, statement: ir.SetField) -> None:
        value, source = self.trees([statement.value, statement.source])  # as Python computes them
        self.settle()
        target = _field(statement, source, ast.Store())
        self.add(ast.Assign([target], value), statement.place)

    @emit.register
    def _(self, statement: ir.SetItem) -> None:
        value, source, key = self.trees([statement.value, statement.source, statement.key])
        self.settle()
        target = ast.Subscript(source, key, ast.Store())
        self.add(ast.Assign([target], value), statement.place)

    @emit.register
    def _(self, statement: ir.InPlace) -> None:
        self.in_place(statement)

    def in_place(self, statement: ir.InPlace) -> None:
        """Writes ``x += y``."""
        (value,) = self.trees([statement.value])
        self.settle()
        target = nodes.stored(statement.target)
        made = ast.AugAssign(target, nodes.BINARY[statement.op](), value)
        self.add(made, statement.place)

    @emit.register
    def _(self, statement: ir.Forget) -> None:
        self.settle()
        self.add(ast.Delete([ast.Name(statement.target, ast.Del())]), statement.place)

    # ---- ways through ----

    @emit.register
    def _(self, statement: ir.Raise) -> None:
        given = [statement.error] if statement.cause is None else [statement.error, statement.cause]
        made = self.trees(given)
        self.settle()
        self.add(ast.Raise(made[0], made[1] if len(made) > 1 else None), statement.place)

    @emit.register
    def _(self, statement: ir.If) -> None:
        (test,) = self.trees([statement.test])
        self.settle()
        then, orelse = statement.then, statement.orelse
        if not then and orelse:
            test, then, orelse = ast.UnaryOp(ast.Not(), test), orelse, ()
        placed(test, statement.place)
        other = self.block(orelse) if orelse else []
        self.add(ast.If(test, self.block(then), other), statement.place)

    @emit.register
    def _(self, statement: ir.For) -> None:
        given, options = self.arguments(statement)
        self.settle()
        over: ast.expr
        if statement.iterable != "items":
            over = ast.Call(nodes.path(statement.callee), given, options)
        elif statement.callee:
            over = given[0]
        else:
            over = ast.Tuple(given, ast.Load())
        targets: list[ast.expr] = [nodes.stored(each) for each in statement.targets]
        target = targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())
        self._latches.append(statement.clears_grads)
        body = self.block(statement.body)
        if self._latches.pop():
            body.append(self._latch(statement.place))
        self.add(ast.For(target, over, body, []), statement.place)

    @emit.register
    def _(self, statement: ir.While) -> None:
        self.settle()
        outer = (self._out, self._pending, self._late)
        self._out, self._pending, self._late = [], [], {}
        for each in statement.condition:
            self.emit(each)
        (test,) = self.trees([statement.test])
        self.settle()
        before = self._out
        self._out, self._pending, self._late = outer
        self._latches.append(False)
        body = self.block(statement.body)
        self._latches.pop()
        if before:
            leave = ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], [])
            test, body = ast.Constant(True), [*before, placed(leave, statement.place), *body]
        self.add(ast.While(placed(test, statement.place), body, []), statement.place)

    @emit.register
    def _(self, statement: ir.Break) -> None:
        self.settle()
        self.add(ast.Break(), statement.place)

    @emit.register
    def _(self, statement: ir.Continue) -> None:
        self.settle()
        if self._latches and self._latches[-1]:
            self.add(self._latch(statement.place), statement.place)
        self.add(ast.Continue(), statement.place)

    def _latch(self, place: ir.Place) -> ast.stmt:
        """Clears gradients (S24)."""
        return placed(ast.Expr(ast.Call(self.helper(CLEAR_GRADS, clear_grads), [], [])), place)

    @emit.register
    def _(self, statement: ir.Return) -> None:
        self.returned(statement)

    def returned(self, statement: ir.Return) -> None:
        """Writes a return."""
        (value,) = self.trees([statement.value])
        self.settle()
        self.add(ast.Return(value), statement.place)

    # ---- ownership ----

    @emit.register
    def _(self, statement: ir.Drop) -> None:
        if self.dropped(statement.name):
            forgotten = nodes.assign(statement.name, ast.Constant(None))
            self.late(statement.name, forgotten, statement.place)

    def dropped(self, variable: str) -> bool:
        """Whether a variable holds something that can be let go of."""
        return variable not in self.nestable

    @emit.register
    def _(self, statement: ir.Owned) -> None:
        self.owned(statement)

    def owned(self, statement: ir.Owned) -> None:
        """Writes an ownership operation; a policy that has some says how."""
        raise TypeError(f"no policy writes {type(statement).__name__}")


def _field(statement: ir.GetField | ir.SetField, source: ast.expr, how: Any) -> ast.expr:
    if statement.is_item:
        return ast.Subscript(source, ast.Constant(statement.field), how)
    return ast.Attribute(source, statement.field, how)


def _in_order(node: ast.AST) -> list[ast.Name]:
    """The names of an expression in the order in which they are read."""
    if isinstance(node, ast.Name):
        return [node]
    return [each for child in ast.iter_child_nodes(node) for each in _in_order(child)]


class _Replacer(ast.NodeTransformer):
    """Puts expressions in the place of names."""

    def __init__(self, taken: dict[str, ast.expr]) -> None:
        self._taken = taken

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._taken.get(node.id, node)


# ---- temporaries that become part of an expression again ----


def nestable(function: ir.Function) -> frozenset[str]:
    """The temporaries that can be nested."""
    defined: Counter[str] = Counter()
    read: Counter[str] = Counter()
    for statement in walk(function.body):
        defined.update(defines(statement))
        if not isinstance(statement, ir.Owned):
            read.update(reads(statement))
    touched = {s.name for s in walk(function.body) if isinstance(s, ir.Owned)}
    touched -= {s.name for s in walk(function.body) if isinstance(s, ir.Drop | ir.Slot)}
    once = {n for n in defined if is_temporary(n) and defined[n] == 1 and read[n] == 1}
    return frozenset((once & in_one_block(function.body)) - touched)


def in_one_block(body: ir.Block) -> set[str]:
    """The names that are defined by a nestable statement and read behind it in the same block."""
    found: set[str] = set()
    seen: set[str] = set()
    for statement in body:
        if isinstance(statement, ir.While):
            found |= in_one_block((*statement.condition, ir.Return(statement.test)))
            found |= in_one_block(statement.body)
            continue
        if not isinstance(statement, ir.Owned):
            found |= seen & set(reads(statement))
        if isinstance(statement, NESTABLE):
            seen |= set(defines(statement))
        for inner in blocks_of(statement):
            found |= in_one_block(inner)
    return found
