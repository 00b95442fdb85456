"""Expressions become statements and operands, in the order in which Python computes them.

Covers: operators, calls, attributes, brackets, displays, conditions. Does not cover: statements
(``statements``), what is refused (``refused``).
"""

from __future__ import annotations

import ast
from typing import NoReturn

from tlmem.compiler import ir
from tlmem.compiler.errors import NotCompilable
from tlmem.compiler.front.names import (
    METHODS,
    NUMBER_CALLS,
    OPERATORS,
    PLAIN_CALLS,
    Names,
)
from tlmem.compiler.front.plainness import Plainness
from tlmem.compiler.front.refused import refusal

SLICE = "%slice"
"""The builtin, by a name that no program has."""


class Expressions:
    """Reads the expressions of one function; ``statements`` builds on it.

    Attributes:
        out: the block that is being written.
    """

    def __init__(self, names: Names, plain: Plainness, function: str, file: str) -> None:
        self.names, self.plain = names, plain
        self.function, self.file = function, file
        self.temporaries = 0
        self.out: list[ir.Statement] = []

    # ---- helpers ----

    def refuse(self, node: ast.AST, construct: str = "", advice: str = "") -> NoReturn:
        """Raises NotCompilable for a construct."""
        named, instead = refusal(node)
        line = getattr(node, "lineno", 0)
        raise NotCompilable(construct or named, self.function, advice or instead, self.file, line)

    def temporary(self) -> str:
        """A name that the program cannot have."""
        self.temporaries += 1
        return f"%{self.temporaries}"

    def emit(self, statement: ir.Statement) -> None:
        self.out.append(statement)

    def capture(self, path: str) -> ir.Captured:
        self.names.capture(path)
        return ir.Captured(path)

    # ---- operands ----

    def operand(self, node: ast.expr) -> ir.Operand:
        """The value of an expression as an operand; what it takes to compute it is written."""
        if isinstance(node, ast.Constant):
            return ir.Const(node.value)
        path = self.names.path_of(node)
        if isinstance(node, ast.Name):
            return self.capture(path) if path else ir.Var(node.id)
        if path:
            return self.capture(path)
        if isinstance(node, ast.Tuple | ast.List):
            kind = "list" if isinstance(node, ast.List) else "tuple"
            return ir.Group(self.operands(node.elts), kind)
        name = self.temporary()
        self.value_into(name, node)
        return ir.Var(name)

    def operands(self, nodes: list[ast.expr]) -> tuple[ir.Operand, ...]:
        """Several, from left to right.

        A name from outside that is read before something that may change it is read into a
        temporary.
        """
        found: list[ir.Operand] = []
        for place, node in enumerate(nodes):
            if isinstance(node, ast.Starred):
                self.refuse(node)
            given = self.operand(node)
            later = (inner for other in nodes[place + 1 :] for inner in ast.walk(other))
            if isinstance(given, ir.Captured) and any(isinstance(n, ast.Call) for n in later):
                kept = self.temporary()
                self.emit(ir.Assign(kept, given, place=place_of(node)))
                given = ir.Var(kept)
            found.append(given)
        return tuple(found)

    def options(self, keywords: list[ast.keyword]) -> ir.Options:
        """Arguments by name."""
        for each in keywords:
            if each.arg is None:
                self.refuse(each.value, "'**'", "name each argument")
        values = self.operands([each.value for each in keywords])
        return tuple((str(k.arg), v) for k, v in zip(keywords, values, strict=True))

    # ---- values ----

    def value_into(self, target: str | None, node: ast.expr) -> None:
        """Writes what gives a name the value of an expression; None: it is not used."""
        if self.plain.holds(node):
            self.plain_into(target, node)
            return
        read = getattr(self, f"_{type(node).__name__.lower()}_into", None)
        if read is not None:
            read(target, node)
        elif isinstance(node, ast.Constant | ast.Name | ast.Tuple | ast.List) or (
            self.names.path_of(node)
        ):
            source = self.operand(node)
            if target is not None:
                self.emit(ir.Assign(target, source, place=place_of(node)))
        else:
            self.refuse(node)

    def plain_into(self, target: str | None, node: ast.expr) -> None:
        """An expression that stays as it is; its names are locals or captured."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and not inner.id.startswith("%"):
                if inner.id not in self.names.locals:
                    self.names.capture(inner.id)
        if isinstance(node, ast.Constant) and target is not None:
            self.emit(ir.Assign(target, ir.Const(node.value), place=place_of(node)))
            return
        self.emit(ir.Plain(target, node, read_names(node, self.names), place=place_of(node)))

    def atom(self, node: ast.expr) -> ast.expr:
        """The expression as a name or a constant, for a plain one around it."""
        return as_tree(self.operand(node), node)

    def _binop_into(self, target: str | None, node: ast.BinOp) -> None:
        op = OPERATORS.get(type(node.op))
        if op is None:
            self.refuse(node, f"the operator of {ast.unparse(node)!r}", "use + - * / // % ** @ & |")
        given = self.operands([node.left, node.right])
        self.emit(ir.Op(target, op, given, place=place_of(node)))

    def _unaryop_into(self, target: str | None, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            made = ast.copy_location(ast.UnaryOp(node.op, self.atom(node.operand)), node)
            self.plain_into(target, made)
        elif isinstance(node.op, ast.UAdd):
            self.refuse(node, "unary '+'", "use x.copy()")
        else:
            given = self.operands([node.operand])
            self.emit(ir.Op(target, OPERATORS[type(node.op)], given, place=place_of(node)))

    def _compare_into(self, target: str | None, node: ast.Compare) -> None:
        if len(node.ops) > 1:
            first, second = ast.unparse(node.left), ast.unparse(node.comparators[0])
            advice = f"compare in two statements, beginning with {first} and {second}"
            self.refuse(node, "a chain of comparisons", advice)
        given = self.operands([node.left, node.comparators[0]])
        op = OPERATORS.get(type(node.ops[0]))
        if op is not None:
            self.emit(ir.Op(target, op, given, place=place_of(node)))
            return
        left, right = (as_tree(each, node) for each in given)
        made = ast.copy_location(ast.Compare(left, node.ops, [right]), node)
        self.plain_into(target, made)

    def _boolop_into(self, target: str | None, node: ast.BoolOp) -> None:
        """``a and b`` as it is meant: b is computed only when a is true."""
        first, *rest = node.values
        if not rest:
            self.value_into(target, first)
            return
        inner = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        if target in inner:  # it is read after the first part is known
            made = self.operand(node)
            self.emit(ir.Assign(str(target), made, place=place_of(node)))
            return
        name = target or self.temporary()
        self.value_into(name, first)
        following = ast.copy_location(ast.BoolOp(node.op, rest), node)
        then = self.block_of(name, following)
        both = (then, ()) if isinstance(node.op, ast.And) else ((), then)
        self.emit(ir.If(ir.Var(name), *both, place=place_of(node)))

    def _ifexp_into(self, target: str | None, node: ast.IfExp) -> None:
        name = target or self.temporary()
        test = self.operand(node.test)
        then, orelse = self.block_of(name, node.body), self.block_of(name, node.orelse)
        self.emit(ir.If(test, then, orelse, place=place_of(node)))

    def block_of(self, target: str, node: ast.expr) -> ir.Block:
        """A block that gives a name the value of an expression."""
        outer, self.out = self.out, []
        self.value_into(target, node)
        made, self.out = tuple(self.out), outer
        return made

    def _joinedstr_into(self, target: str | None, node: ast.JoinedStr) -> None:
        self.plain_into(target, self._with_atoms(node))

    def _with_atoms(self, node: ast.JoinedStr) -> ast.JoinedStr:
        parts: list[ast.expr] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                form = part.format_spec
                if isinstance(form, ast.JoinedStr):
                    form = self._with_atoms(form)
                made = ast.FormattedValue(self.atom(part.value), part.conversion, form)
                part = ast.copy_location(made, part)
            parts.append(part)
        return ast.copy_location(ast.JoinedStr(parts), node)

    def _attribute_into(self, target: str | None, node: ast.Attribute) -> None:
        source = self.operand(node.value)
        self.emit(ir.GetField(target, source, node.attr, place=place_of(node)))

    def _subscript_into(self, target: str | None, node: ast.Subscript) -> None:
        source = self.operand(node.value)
        key = self.key(node.slice)
        if isinstance(key, ir.Const) and isinstance(key.value, str):
            self.emit(ir.GetField(target, source, key.value, True, place=place_of(node)))
        else:
            self.emit(ir.Op(target, "getitem", (source, key), place=place_of(node)))

    def key(self, node: ast.expr) -> ir.Operand:
        """What stands in brackets."""
        if isinstance(node, ast.Tuple):
            return ir.Group(tuple(self.key(each) for each in node.elts))
        if not isinstance(node, ast.Slice):
            return self.operand(node)
        bounds = [
            self.operand(each) if each else ir.Const(None)
            for each in (node.lower, node.upper, node.step)
        ]
        constants = [each.value for each in bounds if isinstance(each, ir.Const)]
        if len(constants) == len(bounds):
            return ir.Const(slice(*constants))
        name = self.temporary()
        self.plain_into(name, sliced(bounds, node))
        return ir.Var(name)

    # ---- calls ----

    def _call_into(self, target: str | None, node: ast.Call) -> None:
        path = self.names.path_of(node.func)
        if path == "super" and not node.args:
            self.refuse(node, "'super()'", "name the class and the object: super(Class, self)")
        op = self.names.operation(path)
        if op:
            given = self.operands(node.args)
            options = self.options(node.keywords)
            self.names.capture(path)
            made = ir.Op(target, op, given, options, "function", path, place=place_of(node))
            self.emit(made)
        elif (
            self.names.is_builtin(path, PLAIN_CALLS)
            or self.names.is_mathematics(path)
            or (self.names.is_builtin(path, NUMBER_CALLS) and all(map(self.plain.holds, node.args)))
        ):
            self._plain_call_into(target, node)
        elif self.names.makes_struct(path):
            given, options = self.operands(node.args), self.options(node.keywords)
            maker = self.capture(path)
            self.emit(ir.MakeStruct(target, maker, given, options, place=place_of(node)))
        else:
            self._other_call_into(target, node, path)

    def _plain_call_into(self, target: str | None, node: ast.Call) -> None:
        values = [as_tree(each, node) for each in self.operands(node.args)]
        options = [
            ast.keyword(name, as_tree(value, node)) for name, value in self.options(node.keywords)
        ]
        self.plain_into(target, ast.copy_location(ast.Call(node.func, values, options), node))

    def _other_call_into(self, target: str | None, node: ast.Call, path: str) -> None:
        where = place_of(node)
        if not path and isinstance(node.func, ast.Attribute):
            receiver = self.operand(node.func.value)
            given, options = self.operands(node.args), self.options(node.keywords)
            name = node.func.attr
            if name in METHODS:
                all_given = (receiver, *given)
                self.emit(ir.Op(target, name, all_given, options, "method", place=where))
            else:
                self.emit(ir.Call(target, receiver, given, options, name, place=where))
            return
        called: ir.Operand
        if path:
            called = self.capture(path)
        elif isinstance(node.func, ast.Name):
            called = ir.Var(node.func.id)
        else:
            self.refuse(node, f"a call of {ast.unparse(node.func)!r}", "give the function a name")
        given, options = self.operands(node.args), self.options(node.keywords)
        known = self.names.is_compiled(path)
        self.emit(ir.Call(target, called, given, options, compiled=known, place=where))


# ---- operands as syntax trees, and where a node stands ----


def place_of(node: ast.AST) -> ir.Place:
    """Where a node stands."""
    return ir.Place(
        getattr(node, "lineno", 0),
        getattr(node, "col_offset", 0),
        getattr(node, "end_lineno", 0) or 0,
        getattr(node, "end_col_offset", 0) or 0,
    )


def read_names(node: ast.expr, names: Names) -> tuple[str, ...]:
    """The locals and temporaries in an expression, each once, in order."""
    found = [inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)]
    return tuple(dict.fromkeys(n for n in found if n in names.locals or is_numbered(n)))


def is_numbered(name: str) -> bool:
    """Whether a name is a temporary: ``%1``."""
    return name.startswith("%") and name[1:].isdigit()


def as_tree(operand: ir.Operand, at: ast.AST) -> ast.expr:
    """An operand as an expression that stands where ``at`` does."""
    made: ast.expr
    if isinstance(operand, ir.Var):
        made = ast.Name(operand.name, ast.Load())
    elif isinstance(operand, ir.Captured):
        first, *rest = operand.path.split(".")
        made = ast.copy_location(ast.Name(first, ast.Load()), at)
        for name in rest:
            made = ast.copy_location(ast.Attribute(made, name, ast.Load()), at)
    elif isinstance(operand, ir.Group):
        kind = ast.List if operand.kind == "list" else ast.Tuple
        made = kind([as_tree(item, at) for item in operand.items], ast.Load())
    elif isinstance(operand.value, slice):
        bounds = (operand.value.start, operand.value.stop, operand.value.step)
        parts = [
            None if each is None else ast.copy_location(ast.Constant(each), at) for each in bounds
        ]
        made = ast.Slice(*parts)
    else:
        made = ast.Constant(operand.value)
    return ast.copy_location(made, at)


def sliced(bounds: list[ir.Operand], at: ast.AST) -> ast.expr:
    """``slice(a, b, c)`` of operands, whatever the program calls ``slice``."""
    call = ast.Call(ast.Name(SLICE, ast.Load()), [as_tree(each, at) for each in bounds], [])
    return ast.fix_missing_locations(ast.copy_location(call, at))
