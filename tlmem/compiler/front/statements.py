"""Statements of Python become statements of the IR.

Covers: assignments, branches, loops, returns. Does not cover: expressions (``expressions``).
"""

from __future__ import annotations

import ast
from typing import Any

from tlmem._exports import MODULE_OF
from tlmem.compiler import ir
from tlmem.compiler.front.expressions import Expressions, place_of
from tlmem.compiler.front.names import OPERATORS

TWO_LEVELS = "unpack in two statements"


class Statements(Expressions):
    """Reads the statements of one function."""

    def block(self, body: list[ast.stmt]) -> ir.Block:
        """The statements of a block; what follows one that leaves is left out."""
        outer, self.out = self.out, []
        for statement in body:
            self.statement(statement)
        made, self.out = tuple(self.out), outer
        return made

    def statement(self, node: ast.stmt) -> None:
        """Writes one statement."""
        read = getattr(self, f"_{type(node).__name__.lower()}", None)
        if read is None:
            self.refuse(node)
        read(node)

    # ---- assignments ----

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1:
            self.assign(node.targets[0], node.value, node)
            return
        value = self.operand(node.value)
        for target in node.targets:
            self.store(target, value, node)

    def _annassign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, node.value, node)

    def assign(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> None:
        """``target = value``."""
        if isinstance(target, ast.Name):
            self.value_into(target.id, value)
        else:
            self.store(target, self.operand(value), node)

    def store(self, target: ast.expr, value: ir.Operand, node: ast.stmt) -> None:
        """Gives a name, several names, a field or an item a value that is known."""
        where = place_of(node)
        if isinstance(target, ast.Name):
            self.emit(ir.Assign(target.id, value, place=where))
        elif isinstance(target, ast.Tuple | ast.List):
            self.emit(ir.Unpack(self.names_of(target), value, place=where))
        elif isinstance(target, ast.Attribute):
            source = self.operand(target.value)
            self.emit(ir.SetField(source, target.attr, value, place=where))
        elif isinstance(target, ast.Subscript):
            source = self.operand(target.value)
            key = self.key(target.slice)
            if isinstance(key, ir.Const) and isinstance(key.value, str):
                self.emit(ir.SetField(source, key.value, value, True, place=where))
            else:
                self.emit(ir.SetItem(source, key, value, place=where))
        else:
            self.refuse(target)

    def names_of(self, target: ast.Tuple | ast.List) -> tuple[str, ...]:
        """The names of an unpacking."""
        found = []
        for each in target.elts:
            if isinstance(each, ast.Starred):
                self.refuse(each, "'*' in an unpacking", "unpack as many names as there are values")
            if not isinstance(each, ast.Name):
                self.refuse(each, f"an unpacking into {ast.unparse(each)!r}", TWO_LEVELS)
            found.append(each.id)
        return tuple(found)

    def _augassign(self, node: ast.AugAssign) -> None:
        op = OPERATORS.get(type(node.op))
        if op is None:
            self.refuse(node, f"the operator of {ast.unparse(node)!r}", "use + - * / // % ** @ & |")
        where, target = place_of(node), node.target
        if isinstance(target, ast.Name):
            value = self.operand(node.value)
            self.emit(ir.InPlace(target.id, op, value, place=where))
            return
        # As Python does: the field or item is read, changed in place, and put back.
        source, name = self.operand(target.value), self.temporary()
        if isinstance(target, ast.Attribute):
            self.emit(ir.GetField(name, source, target.attr, place=where))
            value = self.operand(node.value)
            self.emit(ir.InPlace(name, op, value, place=where))
            self.emit(ir.SetField(source, target.attr, ir.Var(name), place=where))
            return
        key = self.key(target.slice)
        self.emit(ir.Op(name, "getitem", (source, key), place=where))
        value = self.operand(node.value)
        self.emit(ir.InPlace(name, op, value, place=where))
        self.emit(ir.SetItem(source, key, ir.Var(name), place=where))

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name):
                self.refuse(
                    node, f"'del {ast.unparse(target)}'", "set it to None, or do it outside"
                )
            self.emit(ir.Forget(target.id, place=place_of(node)))

    # ---- what computes nothing ----

    def _pass(self, node: ast.Pass) -> None:
        """Nothing."""

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value_into(None, node.value)

    # ---- ways through ----

    def _if(self, node: ast.If) -> None:
        test = self.operand(node.test)
        then, orelse = self.block(node.body), self.block(node.orelse)
        self.emit(ir.If(test, then, orelse, place=place_of(node)))

    def _while(self, node: ast.While) -> None:
        self.refuse_else(node)
        outer, self.out = self.out, []
        test = self.operand(node.test)
        condition, self.out = tuple(self.out), outer
        self.emit(ir.While(condition, test, self.block(node.body), place=place_of(node)))

    def _for(self, node: ast.For) -> None:
        self.refuse_else(node)
        if isinstance(node.target, ast.Name):
            targets: tuple[str, ...] = (node.target.id,)
        elif isinstance(node.target, ast.Tuple | ast.List):
            targets = self.names_of(node.target)
        else:
            self.refuse(node.target, "a loop over a field or an item", "loop over a name")
        loop = self.iterated(node.iter)
        body = self.block(node.body)
        self.emit(ir.For(targets, body=body, place=place_of(node), **loop))

    def refuse_else(self, node: ast.For | ast.While) -> None:
        """Refuses the ``else`` of a loop."""
        if node.orelse:
            kind = "for" if isinstance(node, ast.For) else "while"
            advice = "use a variable that says whether the loop was left by break"
            self.refuse(node.orelse[0], f"'else' of '{kind}'", advice)

    def iterated(self, node: ast.expr) -> dict[str, Any]:
        """What a loop goes over: the parts of an ``ir.For`` that say so."""
        if isinstance(node, ast.Call):
            path = self.names.path_of(node.func)
            found = self.names.value(path) if path else None
            kind = "range" if found is range else "steps"
            if found is range or getattr(found, "__module__", "") == MODULE_OF["steps"]:
                given, options = self.operands(node.args), self.options(node.keywords)
                self.names.capture(path)
                return {"iterable": kind, "operands": given, "options": options, "callee": path}
            advice = "loop over range(...), tlmem.steps(...) or a tuple"
            if path == "range":
                advice = f"it is not Python's range here but {found!r}; {advice}"
            self.refuse(node, f"a loop over {ast.unparse(node.func)!r}", advice)
        if isinstance(node, ast.Tuple | ast.List):
            return {"iterable": "items", "operands": self.operands(node.elts)}
        return {"iterable": "items", "operands": (self.operand(node),), "callee": "in"}

    def _break(self, node: ast.Break) -> None:
        self.emit(ir.Break(place=place_of(node)))

    def _continue(self, node: ast.Continue) -> None:
        self.emit(ir.Continue(place=place_of(node)))

    def _return(self, node: ast.Return) -> None:
        value = self.operand(node.value) if node.value else ir.Const(None)
        self.emit(ir.Return(value, place=place_of(node)))

    def _raise(self, node: ast.Raise) -> None:
        if node.exc is None:
            self.refuse(node, "'raise' without an error", "name the error: raise ValueError(...)")
        error = self.operand(node.exc)
        cause = self.operand(node.cause) if node.cause else None
        self.emit(ir.Raise(error, cause, place=place_of(node)))

    def _assert(self, node: ast.Assert) -> None:
        if not __debug__:
            return
        test = self.operand(node.test)
        outer, self.out = self.out, []
        error = self.temporary()
        given = [self.operand(node.msg)] if node.msg else []
        raised = self.capture("AssertionError")
        where = place_of(node)
        self.emit(ir.Call(error, raised, tuple(given), place=where))
        self.emit(ir.Raise(ir.Var(error), place=where))
        orelse, self.out = tuple(self.out), outer
        self.emit(ir.If(test, (), orelse, place=where))
