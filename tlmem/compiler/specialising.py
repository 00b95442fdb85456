"""A specialisation: one function of Python for one kind of arguments.

Covers: putting the passes and the backend together, for the policy ``default`` (``specialised``)
and for those that say who owns what (``specialised_owned``). Does not cover: choosing between
specialisations (``compiled``).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import FunctionType
from typing import TYPE_CHECKING, Any

from tlmem._exports import MODULE_OF
from tlmem.compiler import ir
from tlmem.compiler.backend import code, nodes
from tlmem.compiler.backend.arrays import DESTINATION, Arrays, arrays
from tlmem.compiler.backend.frames import Frames
from tlmem.compiler.backend.nodes import name
from tlmem.compiler.backend.owning import OwningEmitter
from tlmem.compiler.backend.planned import OUT, PlannedEmitter
from tlmem.compiler.passes.abstract import UNKNOWN, StructType, TensorType
from tlmem.compiler.passes.callees import with_callees
from tlmem.compiler.passes.liveness import live
from tlmem.compiler.passes.moves import destinations
from tlmem.compiler.passes.origins import origins
from tlmem.compiler.passes.ownership import Note, with_drops, with_ownership
from tlmem.compiler.passes.shapes import Outside, Shapes, class_fields, infer
from tlmem.compiler.passes.slots import Slots, slots
from tlmem.compiler.policies import POLICIES
from tlmem.compiler.signature import NEEDS, Signature, needing
from tlmem.compiler.walking import blocks_of, walk
from tlmem.runtime.tensors.core_ops import needs

if TYPE_CHECKING:
    from tlmem.compiler.compiled import Compiled

AGAIN = "%again"
GRADIENTS = ("requires_grad", "is_leaf", "grad")


@dataclass
class Specialisation:
    """What runs for one kind of arguments.

    Attributes:
        signature: the kind.
        with_out: whether ``out=`` is given.
        function: takes the arguments in order and ``out``; when they are of another kind, it asks
            for another specialisation.
        fits: takes the same; whether they are of this kind.
        ir: what it does, with the ownership operations of its policy.
        shapes: what is known of its values.
        plan: which of them are in planned memory.
        frames: that memory; None when nothing is planned.
        code: the statements that run, as Python.
    """

    signature: Signature
    with_out: bool
    function: Callable[..., Any]
    fits: Callable[..., bool]
    ir: ir.Function
    shapes: Shapes
    plan: Arrays
    frames: Frames | None
    code: str


@dataclass
class OwnedSpecialisation(Specialisation):
    """One whose operations are said.

    Attributes:
        notes: the ownership operations, done and left out.
        slots: what is in slots of the frame, and what is not and why.
    """

    notes: tuple[Note, ...] = ()
    slots: Slots | None = None


def specialised(compiled: Compiled, signature: Signature, with_out: bool) -> Specialisation:
    """The specialisation of a function for a signature."""
    function = compiled.ir
    outside = outside_of(compiled, signature)
    arguments = signature.arguments
    watched: list[ast.stmt] = []
    if signature.grad_mode is False and not asks_for_gradients(function):
        watched = [watching(signature)]
        arguments = {each: without_gradient(value) for each, value in arguments.items()}
    calling = with_callees(function, arguments, outside, compiled.outside)
    function = calling.function
    shapes = infer(function, arguments, outside)
    liveness = live(function)
    found = origins(function, shapes, liveness)
    plan = arrays(function, shapes, liveness, found, outside, with_out)
    if plan.is_empty and (enough := needing(function, signature)):
        signature.conditions = enough
    else:
        signature.conditions += [
            is_still(path, it, signature) for path, it in calling.paths.items()
        ]
    planned = with_drops(function, liveness, shapes, plan.names)
    emitter = PlannedEmitter(planned, plan, shapes, liveness, signature.captured, with_out)
    body = [*watched, *emitter.body()]
    helpers = {**signature.helpers, **emitter.helpers}
    called, fits, text = functions_of(compiled, function, signature, with_out, body, helpers)
    return Specialisation(
        signature, with_out, called, fits, planned, shapes, plan, emitter.frames, text
    )


def functions_of(
    compiled: Compiled,
    function: ir.Function,
    signature: Signature,
    with_out: bool,
    body: list[ast.stmt],
    helpers: dict[str, Any],
) -> tuple[FunctionType, FunctionType, str]:
    """What runs for a signature, what says whether a call fits it, and the first as text.

    Args:
        body: the statements behind the guard.
        helpers: objects that the guard and the body read by names that no program has.
    """
    given = [*(each.name for each in function.parameters), OUT]
    helpers = {**helpers, AGAIN: compiled._choose}
    again = ast.Return(nodes.call(AGAIN, *map(name, given)))
    guard = ast.UnaryOp(ast.Not(), guard_of(signature, with_out))
    entry: list[ast.stmt] = [ast.If(guard, [again], []), *body]

    def made(statements: list[ast.stmt]) -> FunctionType:
        free = [*helpers, *compiled.function.__code__.co_freevars]
        line, arguments = function.first_line, code.arguments(given)
        found = code.code_of(function.name, arguments, statements, free, function.file, line)
        return code.function_of(found, compiled.function, helpers)

    fits = made([ast.Return(guard_of(signature, with_out))])
    text = ast.unparse(ast.Module(entry, []))
    return made(entry), fits, text


def is_still(path: str, function: Any, signature: Signature) -> ast.expr:
    """Whether a name from outside is still this function."""
    called = f"%callee_{len(signature.helpers)}"
    signature.helpers[called] = function
    return ast.Compare(nodes.path(path), [ast.Is()], [name(called)])


def guard_of(signature: Signature, with_out: bool) -> ast.expr:
    """Whether a call is of this kind."""
    how = ast.IsNot() if with_out else ast.Is()
    given = ast.Compare(name(OUT), [how], [ast.Constant(None)])
    return ast.BoolOp(ast.And(), [given, *signature.conditions]) if signature.conditions else given


def outside_of(compiled: Compiled, signature: Signature) -> Outside:
    """What the passes may know of names from outside."""

    recorded = signature.grad_mode is not False or asks_for_gradients(compiled.ir)

    def value(path: str) -> Any:
        found = signature.captured.get(path, UNKNOWN)
        return found if recorded else without_gradient(found)

    def fields(path: str) -> Any:
        return class_fields(compiled.outside(path))

    return Outside(value, fields)


# ---- recording is off ----


def asks_for_gradients(function: ir.Function) -> bool:
    """Whether a function asks which tensors need a gradient, or says so."""
    for each in walk(function.body):
        if isinstance(each, ir.GetField) and each.field in GRADIENTS:
            return True
        if isinstance(each, ir.Op) and (
            each.op == "requires_grad_" or "requires_grad" in dict(each.options)
        ):
            return True
        if isinstance(each, ir.Plain) and any(
            isinstance(node, ast.Attribute) and node.attr in GRADIENTS
            for node in ast.walk(each.expression)
        ):
            return True
    return False


def without_gradient(value: Any) -> Any:
    """A value while recording is off: nothing that is computed of it needs a gradient."""
    if isinstance(value, TensorType):
        return replace(value, grad=False)
    if isinstance(value, StructType):
        return replace(value, fields=tuple((n, without_gradient(v)) for n, v in value.fields))
    return tuple(map(without_gradient, value)) if isinstance(value, tuple) else value


def watching(signature: Signature) -> ast.stmt:
    """Tells ``checkpoint`` which arguments and names from outside would need a gradient: what NumPy
    reads it does not see."""
    read = [name(each) for each, known in signature.arguments.items() if may_need(known)]
    outside = [nodes.path(each) for each, known in signature.captured.items() if may_need(known)]
    signature.helpers[NEEDS] = needs
    return ast.Expr(nodes.call(NEEDS, *read, *outside))


def may_need(value: Any) -> bool:
    """Whether a value is a tensor that needs a gradient."""
    return isinstance(value, TensorType) and bool(value.grad)


# ---- policies that say who owns what ----


def specialised_owned(
    compiled: Compiled, signature: Signature, with_out: bool
) -> OwnedSpecialisation:
    """The specialisation of a function for a signature, under the policy of the function."""
    function, policy = compiled.ir, POLICIES[compiled.policy]
    shapes = infer(function, signature.arguments, outside_of(compiled, signature))
    liveness = live(function)
    found = origins(function, shapes, liveness)
    direct = frozenset[int]()
    if with_out and policy.destinations:
        whole = destinations(function, shapes, liveness, found).direct
        direct = frozenset(whole & results(function.body))

    def unable(op: ir.Op) -> str:
        return DESTINATION if op.number in direct else without_destination(op)

    placed = Slots((), {})
    if policy.has_slots:
        placed = slots(function, shapes, liveness, found, unable, with_out)
    owning = with_ownership(function, policy, shapes, liveness, placed, direct)
    emitter = OwningEmitter(owning.function, policy, shapes, placed, direct, with_out)
    body = emitter.body()
    helpers = {**signature.helpers, **emitter.helpers}
    called, fits, text = functions_of(compiled, function, signature, with_out, body, helpers)
    return OwnedSpecialisation(
        signature=signature,
        with_out=with_out,
        function=called,
        fits=fits,
        ir=owning.function,
        shapes=shapes,
        plan=Arrays(),
        frames=None,
        code=text,
        notes=owning.notes,
        slots=placed,
    )


def results(block: ir.Block) -> set[int]:
    """Operations directly before the return of their result: nothing is read behind them."""
    found = set()
    for op, following in zip(block, block[1:], strict=False):
        if isinstance(op, ir.Op) and op.target and isinstance(following, ir.Return):
            if following.value == ir.Var(op.target) and not without_destination(op):
                found.add(op.number)
    for statement in block:
        for inner in blocks_of(statement):
            found |= results(inner)
    return found


def without_destination(op: ir.Op) -> str:
    """Why an operation cannot have a destination; empty when it can."""
    return "" if op.op in MODULE_OF else f"{op.op} takes no destination"
