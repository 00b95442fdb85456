"""A specialisation under a policy that says who owns what.

Covers: putting the passes of such a policy and its emitter together. Does not cover: the policy
``default`` (``specialising``).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING

from tlmem._exports import MODULE_OF
from tlmem.compiler import ir
from tlmem.compiler.backend import code, nodes
from tlmem.compiler.backend.arrays import DESTINATION, Arrays
from tlmem.compiler.backend.owning import OUT, OwningEmitter
from tlmem.compiler.passes.liveness import live
from tlmem.compiler.passes.moves import destinations
from tlmem.compiler.passes.notes import Note
from tlmem.compiler.passes.origins import origins
from tlmem.compiler.passes.ownership import with_ownership
from tlmem.compiler.passes.shapes import infer
from tlmem.compiler.passes.slots import Slots, slots
from tlmem.compiler.policies import POLICIES
from tlmem.compiler.signature import Signature
from tlmem.compiler.specialising import AGAIN, Specialisation, guard_of, outside_of
from tlmem.compiler.walking import blocks_of

if TYPE_CHECKING:
    from tlmem.compiler.compiled import Compiled


@dataclass
class OwnedSpecialisation(Specialisation):
    """One whose operations are said.

    Attributes:
        notes: the ownership operations, done and left out.
        slots: what is in slots of the frame, and what is not and why.
    """

    notes: tuple[Note, ...] = ()
    slots: Slots | None = None


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
    given = [*(each.name for each in function.parameters), OUT]
    guard = guard_of(signature, with_out)
    helpers = {**signature.helpers, **emitter.helpers, AGAIN: compiled._choose}
    again = ast.Return(nodes.call(AGAIN, *map(nodes.name, given)))
    entry: list[ast.stmt] = [ast.If(ast.UnaryOp(ast.Not(), guard), [again], []), *body]

    def made(statements: list[ast.stmt]) -> FunctionType:
        free = [*helpers, *compiled.function.__code__.co_freevars]
        line, arguments = function.first_line, code.arguments(given)
        found = code.code_of(function.name, arguments, statements, free, function.file, line)
        return code.function_of(found, compiled.function, helpers)

    return OwnedSpecialisation(
        signature=signature,
        with_out=with_out,
        function=made(entry),
        fits=made([ast.Return(guard_of(signature, with_out))]),
        ir=owning.function,
        shapes=shapes,
        plan=Arrays(),
        frames=None,
        code=ast.unparse(ast.Module(entry, [])),
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
