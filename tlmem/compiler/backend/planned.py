"""Code that computes into planned memory: the core writes into the tensors of a frame, NumPy into
its arrays.

A frame is taken when the function begins and given back however it ends. Covers: the policy
``default``. Does not cover: what is planned (``arrays``), what a frame is (``frames``).
"""

from __future__ import annotations

import ast
from typing import Any

from tlmem.compiler import ir
from tlmem.compiler.backend import nodes
from tlmem.compiler.backend.arrays import Arrays
from tlmem.compiler.backend.cores import Core
from tlmem.compiler.backend.destination import array_of_out, computed_apart, copied_out, into_out
from tlmem.compiler.backend.emitting import Emitter
from tlmem.compiler.backend.frames import Frames, Part
from tlmem.compiler.backend.kernels import Kernel
from tlmem.compiler.backend.nodes import name, placed
from tlmem.compiler.passes.abstract import TensorType
from tlmem.compiler.passes.liveness import Liveness
from tlmem.compiler.passes.shapes import Shapes
from tlmem.compiler.walking import defines, names_in, reads, walk
from tlmem.runtime.core import lib
from tlmem.runtime.tensors.core_ops import (
    apply_into,
    apply_into_strictly,
    apply_seen,
    apply_strictly,
    apply_unrecorded,
    row,
    seen_part,
)
from tlmem.runtime.tensors.making import destination

OUT = "%out"
SIMPLE = (int, float, str, type(None), tuple)
VERBS = {"matmul": "multiply", "dot": "multiply", "concat": "join", "stack": "join"}


class PlannedEmitter(Emitter):
    """Writes one specialisation.

    Attributes:
        frames: of the specialisation; None when nothing is planned. There when the body is.
    """

    def __init__(
        self,
        function: ir.Function,
        plan: Arrays,
        shapes: Shapes,
        liveness: Liveness,
        captured: dict[str, Any],
        with_out: bool,
    ) -> None:
        super().__init__(function)
        self.captured = captured
        self.plan, self.shapes, self.liveness = plan, shapes, liveness
        self.with_out = with_out
        self._order = list(plan.placed)
        self._place = {number: place for place, number in enumerate(self._order)}
        self._owned_by_frames = self._always_placed()
        self.frames: Frames | None = None
        self.nestable -= self._held()
        self._direct: str | None = None

    def _make_frames(self, used: set[str]) -> Frames:
        """The frames of what the code reads."""
        assert self.plan.layout is not None
        parts = []
        for number in self._order:
            made = self.shapes.tensor(number, self.plan.placed[number].name)
            assert made is not None and made.shape is not None and made.dtype is not None
            offset = self.plan.layout.offsets[number]
            how = self._array_name(number) in used, self._tensor_name(number) in used
            parts.append(Part(offset, made.shape, made.dtype, *how))
        return Frames(tuple(parts), self.plan.layout.nbytes)

    def _always_placed(self) -> set[str]:
        """The variables that only ever name what is in the frame."""
        given: dict[str, bool] = {}
        for statement in walk(self.function.body):
            for each in defines(statement):
                given[each] = given.get(each, True) and statement.number in self.plan.placed
        return {each for each, placed in given.items() if placed} - {
            each.name for each in self.function.parameters
        }

    def _held(self) -> set[str]:
        """Temporaries that must be variables: tensors whose memory is read as an array, and what
        may be read twice."""
        held = set()
        for statement in walk(self.function.body):
            number, core = statement.number, self.plan.cores.get(statement.number)
            if isinstance(statement, ir.Owned):
                continue
            if core is not None and not core.doubtful and number not in self.plan.direct:
                continue  # it takes tensors as they come
            if core is not None or number in self.plan.kernels or number in self.plan.views:
                held |= set(reads(statement))
        for statement in walk(self.function.body):
            apart = statement.number in self.plan.apart
            if (
                statement.number in self.plan.unrecorded
                and not apart
                and isinstance(statement, ir.Op)
            ):
                held |= {*reads(statement), statement.target or ""}
        return held - self.plan.names

    # ---- the frame ----

    def body(self) -> list[ast.stmt]:
        """The statements of the function, around them the frame."""
        inner = super().body()
        if self.plan.layout is None:
            return inner
        used = {each.id for tree in inner for each in ast.walk(tree) if isinstance(each, ast.Name)}
        self.frames = self._make_frames(used)
        place = ir.Place(self.function.first_line)
        self.helpers["%take"] = self.frames.free.pop
        self.helpers["%give"] = self.frames.free.append
        self.helpers["%frame_of_its_own"] = self.frames.make
        self.helpers["%nothing_free"] = IndexError
        names = [*map(self._array_name, self._order), *map(self._tensor_name, self._order)]
        names = [*(each for each in names if each in used), "%buffer"]
        targets: list[ast.expr] = [nodes.stored(each) for each in names]
        unpacking = ast.Assign([ast.Tuple(targets, ast.Store())], name("%frame"))
        made = nodes.assign("%frame", nodes.call("%frame_of_its_own"))
        handler = ast.ExceptHandler(name("%nothing_free"), None, [made])
        taking = ast.Try([nodes.assign("%frame", nodes.call("%take"))], [handler], [], [])
        giving = ast.Expr(nodes.call("%give", name("%frame")))
        around = ast.Try([unpacking, *inner], [], [], [giving])
        return [placed(taking, place), placed(around, place)]

    def _array_name(self, number: int) -> str:
        return f"%array_{self._place[number]}"

    def _tensor_name(self, number: int) -> str:
        return f"%tensor_{self._place[number]}"

    # ---- operations ----

    def op(self, statement: ir.Op) -> None:
        """An operation, by NumPy where that was decided."""
        number = statement.number
        if number in self.plan.core:
            self._of_core(statement)
        elif number in self.plan.unrecorded:
            self._without_record(statement)
        elif number in self.plan.unrecorded.values():
            (tree,) = self.trees(list(statement.operands))
            self.define(statement.target, tree, statement.place)
        elif number in self.plan.direct:
            self._into_out(statement)
        elif number in self.plan.placed:
            self._into_slot(statement)
        elif number in self.plan.seen:
            self.define(statement.target, self._seen(statement), statement.place)
        elif number in self.plan.views:
            self.define(statement.target, self._view(statement), statement.place)
        elif statement.op == "item" and set(reads(statement)) & self.plan.names:
            (array,) = self._arrays(list(statement.operands), statement)
            called = ast.Call(ast.Attribute(array, "item", ast.Load()), [], [])
            self.define(statement.target, called, statement.place)
        else:
            super().op(statement)

    def field(self, statement: ir.GetField) -> None:
        """A field; of an array, a view."""
        if statement.number in self.plan.seen:
            self.define(statement.target, self._seen(statement), statement.place)
        elif statement.number in self.plan.views:
            self.define(statement.target, self._view(statement), statement.place)
        else:
            super().field(statement)

    def in_place(self, statement: ir.InPlace) -> None:
        """``x += y``."""
        if statement.target not in self.plan.names:
            super().in_place(statement)
            return
        target = ir.Var(statement.target)
        kernel = self.plan.kernels[statement.number]
        made = self._call(kernel, [target, statement.value], name(statement.target), statement)
        self.define(None, made, statement.place)

    def _of_core(self, statement: ir.Op) -> None:
        """An operation of the core without the function around it."""
        number, given = self.plan.core[statement.number]
        (tree,) = self.trees([statement.operands[0]])
        constants = [ast.Constant(each) for each in (number, 1)]
        self.helper("%apply", apply_strictly)
        made = nodes.call("%apply", *constants, tree, *(ast.Constant(each) for each in given))
        self.define(statement.target, made, statement.place)

    def _without_record(self, statement: ir.Op) -> None:
        """An operation with recording off; its operands are computed as the program says."""
        core = self.plan.apart.get(statement.number)
        if core is not None:
            numbers = [ast.Constant(core.row), ast.Constant(len(self._read_by(core, statement)))]
            trees = self.trees(self._read_by(core, statement))
            function = self.helper("%unrecorded", apply_unrecorded)
            parameters = map(nodes.constant, core.parameters)
            made: ast.expr = nodes.call(function.id, *numbers, *trees, *parameters)
            self.define(statement.target, made, statement.place)
            return
        given, options = self.arguments(statement)
        self.settle()
        made = self.written(statement, given, options)
        before, off = nodes.name("%recording"), ast.Constant(0)
        self.helper("%set_recording", lib.tlm_grad_mode)
        place, target = statement.place, statement.target or "%unused"
        self.add(nodes.assign("%recording", nodes.call("%set_recording", off)), place)
        again = ast.Expr(nodes.call("%set_recording", before))
        self.add(ast.Try([nodes.assign(target, made)], [], [], [again]), place)

    def _into_slot(self, statement: ir.Op) -> None:
        number = statement.number
        core = self.plan.cores.get(number)
        tensor = name(self._tensor_name(number))
        if number in self.plan.callees:
            self.define(statement.target, self._called(statement, tensor), statement.place)
            return
        if core is not None and not core.doubtful:
            into = self.helper("%into", apply_into_strictly)
            written = self._by_core(core, statement, into, tensor)
            self.define(statement.target, written, statement.place)
            return
        if core is not None:
            kernel, array = self.plan.kernels[number], name(self._array_name(number))
            other = self._call(kernel, list(statement.operands), array, statement)
            self._tried(core, statement, tensor, other)
            self.define(statement.target, tensor, statement.place)
            return
        kernel, array = self.plan.kernels[number], name(self._array_name(number))
        made = self._call(kernel, list(statement.operands), array, statement)
        if statement.target in self.plan.names:
            self.define(statement.target, made, statement.place)
        else:
            self.define(None, made, statement.place)
            self.define(statement.target, name(self._tensor_name(number)), statement.place)

    def _called(self, statement: ir.Op, out: ast.expr) -> ast.expr:
        """A call of a compiled function that is given its destination."""
        given, options = self.arguments(statement)
        return self.written(statement, given, [*options, ast.keyword("out", out)])

    def _by_core(self, core: Core, statement: ir.Op, function: ast.expr, out: ast.expr) -> ast.Call:
        """A call of the core into a tensor."""
        assert isinstance(function, ast.Name)
        read = self._read_by(core, statement)
        numbers = [ast.Constant(core.row), ast.Constant(len(read))]
        parameters = map(nodes.constant, core.parameters)
        return nodes.call(function.id, *numbers, out, *self.trees(read), *parameters)

    def _read_by(self, core: Core, statement: ir.Op) -> list[ir.Operand]:
        """The operands of a call of the core, which has no options."""
        if not core.joined:
            return [statement.operands[k] for k in range(core.count)]
        assert isinstance(statement.operands[0], ir.Group)
        return list(statement.operands[0].items)

    def _tried(self, core: Core, statement: ir.Op, out: ast.expr, other: ast.expr) -> None:
        """The core computes into a tensor; where it cannot, something else does."""
        self.settle()
        made = self._by_core(core, statement, self.helper("%into_if_here", apply_into), out)
        test = ast.Compare(made, [ast.IsNot()], [out])
        self.add(ast.If(test, [ast.Expr(other)], []), statement.place)

    def _into_out(self, statement: ir.Op) -> None:
        made = self.shapes.tensor(statement.number, statement.target or "")
        assert made is not None
        if statement.number in self.plan.callees:
            self.define(None, self._called(statement, name(OUT)), statement.place)
            self._direct = statement.target
            return
        known = [nodes.constant(each) for each in (made.shape, made.dtype, made.device)]
        self.helper("%array_of_out", array_of_out)
        array = nodes.call("%array_of_out", name(OUT), *known)
        core = self.plan.cores.get(statement.number)
        call: ast.expr
        if core is None or core.doubtful:
            kernel = self.plan.kernels[statement.number]
            call = self._call(kernel, list(statement.operands), array, statement)
        else:
            apart = self.helper("%computed_apart", computed_apart)
            fitting = self.helper("%destination", destination)
            call = self._by_core(core, statement, apart, nodes.call(fitting.id, name(OUT), *known))
        if core is None:
            self.define(None, call, statement.place)
        else:
            self._tried(core, statement, name(OUT), call)
        self._direct = statement.target

    def _call(
        self, kernel: Kernel, operands: list[ir.Operand], out: ast.expr, statement: Any
    ) -> ast.expr:
        """A call of NumPy's."""
        number = statement.number
        read: list[ir.Operand] = []
        if kernel.joined:
            assert isinstance(operands[0], ir.Group)
            read = list(operands[0].items)
        else:
            read = [operands[each] for each in kernel.operands if isinstance(each, int)]
        trees = self._arrays(read, statement)
        given: list[ast.expr]
        if kernel.joined:
            given = [ast.List(trees, ast.Load())]
        else:
            waiting = iter(trees)
            given = [
                next(waiting) if isinstance(each, int) else self._constant(each)
                for each in kernel.operands
            ]
        options = {
            option: nodes.constant(value)
            if isinstance(value, SIMPLE)
            else self.helper(f"%{option}_{number}", value)
            for option, value in kernel.options
        }
        called = f"%{getattr(kernel.function, '__qualname__', 'numpy')}_{number}"
        function = self.helper(called, kernel.function)
        return nodes.call(function, *given, **options, out=out)

    def _constant(self, value: Any) -> ast.expr:
        for known, other in self.helpers.items():
            if known.startswith("%constant") and _same(other, value):
                return name(known)
        return self.helper(f"%constant_{len(self.helpers)}", value)

    # ---- operands ----

    def _arrays(self, operands: list[ir.Operand], statement: Any) -> list[ast.expr]:
        """Operands for NumPy: arrays, and numbers as they are."""
        trees = self.trees(operands)
        return [
            self._array(operand, tree, statement)
            for operand, tree in zip(operands, trees, strict=True)
        ]

    def _array(self, operand: ir.Operand, tree: ast.expr, statement: Any) -> ast.expr:
        number = statement.number
        if isinstance(operand, ir.Const) or not self._is_tensor(operand, number):
            return tree
        if isinstance(operand, ir.Var):
            if operand.name in self.plan.names:
                return tree
            reaching = self.liveness.reaching.get(number, {}).get(operand.name, frozenset())
            if len(reaching) == 1 and (made := next(iter(reaching))) in self.plan.placed:
                if made not in self._arguments():
                    return name(self._array_name(made))
        op = getattr(statement, "op", "")
        doing = ast.Constant(VERBS.get(op, op or "use"))
        return ast.Call(ast.Attribute(tree, "_data", ast.Load()), [doing], [])

    def _arguments(self) -> range:
        return range(1, len(self.function.parameters) + 1)

    def _is_tensor(self, operand: ir.Operand, number: int) -> bool:
        if isinstance(operand, ir.Captured):
            return isinstance(self.captured.get(operand.path), TensorType)
        assert isinstance(operand, ir.Var)
        found = self.shapes.before.get(number, {}).get(operand.name)
        return isinstance(found, TensorType)

    def _seen(self, statement: ir.Op | ir.GetField) -> ast.expr:
        """A view that the core reads."""
        source = statement.source if isinstance(statement, ir.GetField) else statement.operands[0]
        (tensor,) = self.trees([source])
        method, given = self.plan.seen[statement.number]
        if method == "[]":
            return nodes.call(
                self.helper("%seen_part", seen_part).id, tensor, nodes.constant(given)
            )
        of, parameters = (row("transpose"), (0,))
        if method == "reshape":
            (shape,) = given
            of, parameters = row("reshape"), (len(shape), *shape)
        numbers = (ast.Constant(of), ast.Constant(1))
        function = self.helper("%seen", apply_seen).id
        return nodes.call(function, *numbers, tensor, *map(nodes.constant, parameters))

    def _view(self, statement: ir.Op | ir.GetField) -> ast.expr:
        source = statement.source if isinstance(statement, ir.GetField) else statement.operands[0]
        (array,) = self._arrays([source], statement)
        method, given = self.plan.views[statement.number]
        if method == "T":
            return ast.Attribute(array, "T", ast.Load())
        if method == "[]":
            return ast.Subscript(array, nodes.constant(given), ast.Load())
        return nodes.call(
            ast.Attribute(array, method, ast.Load()), *(nodes.constant(each) for each in given)
        )

    # ---- results ----

    def returned(self, statement: ir.Return) -> None:
        """A return; into the destination of the caller when there is one."""
        if not self.with_out:
            super().returned(statement)
            return
        if isinstance(statement.value, ir.Var) and statement.value.name == self._direct:
            value: ast.expr = name(OUT)
        else:
            (tree,) = self.trees([statement.value])
            is_array = set(names_in(statement.value)) & self.plan.names
            called = copied_out if is_array else into_out
            value = nodes.call(self.helper(f"%{called.__name__}", called), tree, name(OUT))
        self._direct = None
        self.settle()
        self.add(ast.Return(value), statement.place)

    def dropped(self, variable: str) -> bool:
        """Whether a variable holds something that can be let go of."""
        is_free = variable in self.plan.names or variable in self._owned_by_frames
        return super().dropped(variable) and not is_free


def _same(one: Any, other: Any) -> bool:
    """Whether two constants are the same to the bit."""
    same = one.dtype == other.dtype and one.shape == other.shape
    return bool(same and one.tobytes() == other.tobytes())
