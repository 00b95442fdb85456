"""What is computed straight into planned memory, by the core or by NumPy, and which variables are
arrays of NumPy's then.

What is planned has a tensor over its memory that is made once, and the core writes there and reads
there. Views of it, and what only NumPy computes, are arrays: a variable is one when everything that
gives it a value gives an array, and everything that reads it takes one.

Covers: the decision. Does not cover: which memory (``passes.slots``), the code (``planned``).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.backend.cores import Core, core_of
from tlmem.compiler.backend.direct import Direct, direct_of
from tlmem.compiler.backend.kernels import Kernel, NoKernel, kernel_of, of_two
from tlmem.compiler.passes.abstract import UNKNOWN, TensorType, abstract, is_known
from tlmem.compiler.passes.gradients import unrecorded
from tlmem.compiler.passes.liveness import Liveness
from tlmem.compiler.passes.origins import Origins
from tlmem.compiler.passes.shape_rules import callees
from tlmem.compiler.passes.shapes import Outside, Shapes
from tlmem.compiler.passes.slots import FrameLayout, SlotResult, Slots, layout, slots
from tlmem.compiler.walking import blocks_of, defines, reads, walk
from tlmem.runtime.dtypes import WHOLE

LIKE_NEW = ("reshape", "flatten", "squeeze", "unsqueeze")
SEEN = ("T", "reshape", "[]")
VIEWS = (*LIKE_NEW, "T", "transpose", "swapaxes", "getitem")
DESTINATION = "it is computed into the destination of the caller"


@dataclass
class Arrays:
    """The decision.

    Attributes:
        kernels: number of an operation -> how NumPy computes it, into a slot or the caller's
            ``out``.
        cores: likewise those that the core computes.
        callees: calls of compiled functions that are given their destination.
        placed: number of an operation -> its slot.
        layout: where the slots are in the buffer of a frame.
        refused: number of an operation -> why it makes memory of its own.
        direct: operations that compute into the caller's ``out``.
        views: number of an operation -> the view of NumPy's that it is: ``(method, arguments)``.
        names: variables that are arrays.
        seen: views that the core reads, which are tensors without an object; as ``views``.
        unrecorded: number of an operation whose record nobody would read -> that of the detach
            behind it.
        apart: those of them that the core computes without asking the mode of recording.
        core: number of an operation -> how the core is called without the function around it.
    """

    kernels: dict[int, Kernel] = field(default_factory=dict)
    cores: dict[int, Core] = field(default_factory=dict)
    callees: set[int] = field(default_factory=set)
    placed: dict[int, SlotResult] = field(default_factory=dict)
    layout: FrameLayout | None = None
    refused: dict[int, str] = field(default_factory=dict)
    direct: frozenset[int] = frozenset()
    views: dict[int, tuple[str, Any]] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    seen: dict[int, tuple[str, Any]] = field(default_factory=dict)
    unrecorded: dict[int, int] = field(default_factory=dict)
    apart: dict[int, Core] = field(default_factory=dict)
    core: dict[int, Direct] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether everything is computed as the program wrote it."""
        return not (
            self.kernels
            or self.cores
            or self.callees
            or self.views
            or self.seen
            or self.unrecorded
            or self.core
        )


def arrays(
    function: ir.Function,
    shapes: Shapes,
    liveness: Liveness,
    found: Origins,
    outside: Outside,
    with_out: bool,
) -> Arrays:
    """The decision for a numbered function."""
    return _Decision(function, shapes, liveness, found, outside, with_out).made()


class _Decision:
    """Decides for one specialisation."""

    def __init__(
        self,
        function: ir.Function,
        shapes: Shapes,
        liveness: Liveness,
        found: Origins,
        outside: Outside,
        with_out: bool,
    ) -> None:
        self.function, self.shapes, self.liveness = function, shapes, liveness
        self.found, self.outside, self.with_out = found, outside, with_out
        self.result = Arrays()
        self.parameters = {each.name for each in function.parameters}
        statements = list(walk(function.body))
        self.gradients = gradients_read(statements)
        self.is_closed = not any(isinstance(each, ir.Call | ir.MakeStruct) for each in statements)

    def made(self) -> Arrays:
        made = self.result
        made.unrecorded = unrecorded(self.function, self.shapes)
        direct = self._tails() if self.with_out else set()

        def unable(op: ir.Op) -> str:
            if op.number in direct:
                return DESTINATION
            return self._how_written(op)

        planned: Slots = slots(
            self.function, self.shapes, self.liveness, self.found, unable, self.with_out
        )
        made.refused = planned.refused
        made.direct = frozenset(direct)
        made.placed = {each.number: each for each in planned.placed}
        written = {*made.direct, *made.placed}
        made.kernels = {n: k for n, k in made.kernels.items() if n in written}
        made.cores = {n: c for n, c in made.cores.items() if n in written}
        made.callees &= written
        if planned.placed:
            made.layout = layout(planned.placed)
        made.names = self._array_names()
        made.cores = {n: c for n, c in made.cores.items() if not self._meets_array(n)}
        for op in walk(self.function.body):
            if isinstance(op, ir.Op) and op.number in made.unrecorded:
                self._note_apart(op)
            if isinstance(op, ir.Op) and not self._is_written(op):
                given, options = self.operands(op)
                how = direct_of(op, given, options, self.shapes.tensor(op.number, op.target or ""))
                if how is not None:
                    made.core[op.number] = how
        return made

    def _note_apart(self, op: ir.Op) -> None:
        """Notes how the core computes an operation that is not recorded."""
        made = self.shapes.tensor(op.number, op.target or "")
        if made is not None and made.shape is not None and not self.gradients & set(reads(op)):
            found = core_of(op, *self.operands(op), made)
            if found is not None and not found.doubtful:
                self.result.apart[op.number] = found

    def _is_written(self, op: ir.Op) -> bool:
        """Whether an operation is computed some other way already, or may be of None."""
        made = self.result
        others = {
            *made.callees,
            *made.kernels,
            *made.cores,
            *made.views,
            *made.seen,
            *made.unrecorded,
            *made.unrecorded.values(),
        }
        return op.number in others or bool(self.gradients & set(reads(op)))

    def operands(self, op: ir.Op) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The abstract values of the operands and options of an operation."""
        given = tuple(self.known(each, op.number) for each in op.operands)
        return given, {name: self.known(each, op.number) for name, each in op.options}

    # ---- operations ----

    def known(self, operand: ir.Operand, number: int) -> Any:
        """The abstract value of an operand at a statement."""
        if isinstance(operand, ir.Var):
            return self.shapes.before.get(number, {}).get(operand.name, UNKNOWN)
        if isinstance(operand, ir.Captured):
            return self._captured(operand.path)
        if isinstance(operand, ir.Const):
            return abstract(operand.value)
        return tuple(self.known(item, number) for item in operand.items)

    def _captured(self, path: str) -> Any:
        """A name from outside; a call may have asked for the gradient of a tensor."""
        found = self.outside.value(path)
        doubtful = isinstance(found, TensorType) and found.dtype not in WHOLE
        return UNKNOWN if doubtful and not self.is_closed else found

    def _how_written(self, op: ir.Op) -> str:
        """Notes how an operation is computed into given memory; why it is not, empty when it is."""
        made = self.shapes.tensor(op.number, op.target or "")
        if self.gradients & set(reads(op)):
            return "a gradient may be missing"
        if made is None or made.shape is None or made.dtype is None or made.grad is not False:
            return "too little is known of it"
        if op.op in callees:
            self.result.callees.add(op.number)
            return ""
        given, options = self.operands(op)
        core, why = core_of(op, given, options, made), ""
        try:
            self.result.kernels[op.number] = kernel_of(op, given, options, made)
        except NoKernel as refused:
            why = str(refused)
            core = None if core is not None and core.doubtful else core
        if core is not None:
            self.result.cores[op.number] = core
        return why if core is None else ""

    def _tails(self) -> set[int]:
        """Operations directly before the return of their result that can have a destination."""
        found: set[int] = set()

        def visit(block: ir.Block) -> None:
            for op, following in zip(block, block[1:], strict=False):
                if isinstance(following, ir.Return) and isinstance(op, ir.Op) and op.target:
                    if following.value == ir.Var(op.target) and not self._how_written(op):
                        found.add(op.number)
            for statement in block:
                for inner in blocks_of(statement):
                    visit(inner)

        visit(self.function.body)
        return found

    # ---- variables ----

    def _array_names(self) -> frozenset[str]:
        """The variables that are arrays: fewer and fewer, until all agree."""
        giving: dict[str, list[ir.Statement]] = defaultdict(list)
        reading: dict[str, list[ir.Statement]] = defaultdict(list)
        for statement in walk(self.function.body):
            for name in defines(statement):
                giving[name].append(statement)
            for name in set(reads(statement)):
                reading[name].append(statement)
        seen = self._seen_names(giving, reading)
        names = set(giving) - self.parameters - self._tensor_names(giving) - seen
        while True:
            self.result.views = {}
            wrong = {
                name
                for name in names
                if not all(self._gives(each, names) for each in giving[name])
                or not all(self._takes(each, name, names) for each in reading[name])
            }
            if not wrong:
                return frozenset(names)
            names -= wrong

    def _seen_names(
        self, giving: dict[str, list[ir.Statement]], reading: dict[str, list[ir.Statement]]
    ) -> set[str]:
        """The variables that are views which only the core reads: fewer and fewer."""
        cores = self.result.cores
        views = {
            name
            for name, statements in giving.items()
            if name not in self.parameters and all(map(may_be_view, statements))
        }

        def is_tensor(operand: Any) -> bool:
            """Whether an operand is a tensor and surely no array."""
            if not isinstance(operand, ir.Var) or operand.name in views:
                return True
            return all(each.number in cores for each in giving.get(operand.name, ()))

        def is_seen(name: str) -> bool:
            for each in giving[name]:
                how = self._view_of(each, views)
                if how is None or how[0] not in SEEN or not is_tensor(source_of(each)):
                    return False
            return all(
                each.number in cores or (set(defines(each)) <= views and may_be_view(each))
                for each in reading[name]
            )

        while wrong := {name for name in views if not is_seen(name)}:
            views -= wrong
        for name in views:
            for each in giving[name]:
                how = self._view_of(each, views)
                assert how is not None
                self.result.seen[each.number] = how
        return views

    def _tensor_names(self, giving: dict[str, list[ir.Statement]]) -> set[str]:
        """The variables that the core reads or gives, but for those that may be a view."""
        found: set[str] = set()
        for op in walk(self.function.body):
            if op.number in self.result.cores and isinstance(op, ir.Op):
                found |= {*reads(op), op.target or ""}
        return {each for each in found if not any(map(may_be_view, giving.get(each, ())))}

    def _meets_array(self, number: int) -> bool:
        """Whether an operation reads or gives a variable that is an array."""
        (op,) = (each for each in walk(self.function.body) if each.number == number)
        return bool(self.result.names & {*reads(op), *defines(op)})

    def _gives(self, statement: ir.Statement, names: set[str]) -> bool:
        """Whether a statement gives its target an array."""
        if isinstance(statement, ir.Op):
            return statement.number in self.result.kernels or self._is_view(statement, names)
        if isinstance(statement, ir.GetField):
            return self._is_view(statement, names)
        if isinstance(statement, ir.Assign):
            return isinstance(statement.source, ir.Var) and statement.source.name in names
        return isinstance(statement, ir.InPlace) and self._is_in_place(statement)

    def _takes(self, statement: ir.Statement, name: str, names: set[str]) -> bool:
        """Whether a statement takes an array for a variable."""
        number = statement.number
        if isinstance(statement, ir.Op):
            if statement.op == "item" and len(statement.operands) == 1:
                return self._is_one(name, number)
            return number in self.result.kernels or self._is_view(statement, names)
        if isinstance(statement, ir.GetField):
            return self._is_view(statement, names)
        if isinstance(statement, ir.Assign):
            return statement.target in names
        if isinstance(statement, ir.InPlace):
            return self._is_in_place(statement) and statement.target in names
        if isinstance(statement, ir.If | ir.While):
            return self._is_one(name, number)
        return (
            isinstance(statement, ir.Return) and self.with_out and statement.value == ir.Var(name)
        )

    def _is_one(self, name: str, number: int) -> bool:
        """Whether a variable has one element."""
        found = self.known(ir.Var(name), number)
        return isinstance(found, TensorType) and found.shape is not None and not found.shape

    def _is_in_place(self, statement: ir.InPlace) -> bool:
        """Whether ``x += y`` can be computed by NumPy, in planned memory."""
        target = self.known(ir.Var(statement.target), statement.number)
        memories = self.found.before.get(statement.number, {}).get(statement.target, frozenset([0]))
        if not memories <= self.result.placed.keys() or not isinstance(target, TensorType):
            return False
        try:
            given = (target, self.known(statement.value, statement.number))
            if target.grad is not False or any(_may_need(each) for each in given):
                return False
            self.result.kernels[statement.number] = of_two(statement.op, given, target)
        except (NoKernel, KeyError):
            return False
        return True

    # ---- views ----

    def _is_view(self, statement: ir.Op | ir.GetField, names: set[str]) -> bool:
        """Whether a statement gives an array that is a view; notes how it is written."""
        how = self._view_of(statement, names)
        if how is not None:
            self.result.views[statement.number] = how
        return how is not None

    def _view_of(self, statement: ir.Statement, names: set[str]) -> tuple[str, Any] | None:
        """How a view that is given to one of some variables is written; None: it is none."""
        first, target = source_of(statement), getattr(statement, "target", None)
        if target not in names or not isinstance(first, ir.Var | ir.Captured):
            return None
        if not self._may_view(first, statement.number, names):
            return None
        before = self.known(first, statement.number)
        made = self.shapes.tensor(statement.number, target)
        if not isinstance(before, TensorType) or made is None or made.shape is None:
            return None
        if _may_need(before) or made.grad is not False:
            return None
        assert isinstance(statement, ir.Op | ir.GetField)
        return self._how(statement, before, made)

    def _may_view(self, source: ir.Operand, number: int, names: set[str]) -> bool:
        """Whether memory surely lives as long as the function: that of a frame or of arguments."""
        if isinstance(source, ir.Captured):
            return self.is_closed
        assert isinstance(source, ir.Var)
        if source.name in names:
            return True
        reaching = self.liveness.reaching.get(number, {}).get(source.name, frozenset([0]))
        arguments = range(1, len(self.parameters) + 1)
        return all(each in self.result.placed for each in reaching) or (
            self.is_closed and all(each in arguments for each in reaching)
        )

    def _how(
        self, statement: ir.Op | ir.GetField, before: TensorType, made: TensorType
    ) -> tuple[str, Any] | None:
        """The method of an array and its arguments, or ``[]`` and a key."""
        if isinstance(statement, ir.GetField):
            return ("T", None) if statement.field == "T" else None
        rest = [self.known(each, statement.number) for each in statement.operands[1:]]
        if statement.op == "T" or (statement.op == "transpose" and not rest):
            return ("T", None) if not statement.options else None
        if statement.op in LIKE_NEW and before.contiguous:
            return "reshape", (made.shape,)
        if statement.op == "swapaxes" and all(map(is_known, rest)) and not statement.options:
            return "swapaxes", tuple(rest)
        if statement.op == "getitem" and made.shape and is_plain_key(rest[0]):
            return "[]", rest[0]
        return None


def source_of(statement: ir.Statement) -> ir.Operand | None:
    """What a view looks into."""
    if isinstance(statement, ir.GetField):
        return statement.source
    return statement.operands[0] if isinstance(statement, ir.Op) and statement.operands else None


def may_be_view(statement: ir.Statement) -> bool:
    """Whether a statement may give a view of something."""
    return isinstance(statement, ir.GetField) or (
        isinstance(statement, ir.Op) and statement.op in VIEWS
    )


def gradients_read(statements: list[ir.Statement]) -> frozenset[str]:
    """Variables that are the gradient of something, or None."""
    found: set[str] = set()
    for each in statements:
        if isinstance(each, ir.GetField) and each.field == "grad" and each.target:
            found.add(each.target)
        elif isinstance(each, ir.Assign) and found & set(reads(each)):
            found.add(each.target)
    return frozenset(found)


def _may_need(value: Any) -> bool:
    """Whether an operand may need a gradient."""
    return value is UNKNOWN or (isinstance(value, TensorType) and value.grad is not False)


def is_plain_key(key: Any) -> bool:
    """Whether an index is known and gives a view."""
    if isinstance(key, tuple):
        return all(map(is_plain_key, key))
    if isinstance(key, slice):
        return all(each is None or type(each) is int for each in (key.start, key.stop, key.step))
    return key is None or key is ... or type(key) is int
