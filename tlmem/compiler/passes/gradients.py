"""Gradients: loops that clear them at the end of each turn, and records that no rule would read.

A ``for`` that calls ``backward`` begins each turn without gradients (S24). Not a ``while``, as in
the seeds, and not ``tlmem.steps``, which clears them itself. A turn that is left by ``break`` keeps
its gradients.

``detach(a - b)`` needs no record of the difference: an operation whose result is only detached is
computed with recording off; the result is what detach would have given, in memory of its own.

Source: docs/seed-map.md, S24.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tlmem.compiler import ir
from tlmem.compiler.passes.abstract import TensorType
from tlmem.compiler.passes.shape_rules import FRESH, rule_of
from tlmem.compiler.passes.shapes import Shapes
from tlmem.compiler.walking import blocks_of, is_temporary, reads, rebuilt, walk

# ---- loops that clear gradients ----


def with_latches(function: ir.Function) -> ir.Function:
    """The function with ``clears_grads`` at each ``for`` that calls ``backward``."""

    def change(statement: ir.Statement) -> ir.Block:
        if isinstance(statement, ir.For) and statement.iterable != "steps":
            clears = any(map(goes_backward, walk(statement.body)))
            return (replace(statement, clears_grads=clears),)
        return (statement,)

    return replace(function, body=rebuilt(function.body, change))


def goes_backward(statement: ir.Statement) -> bool:
    """Whether a statement computes gradients."""
    if isinstance(statement, ir.Op):
        return statement.op == "backward"
    return isinstance(statement, ir.Call) and (
        statement.method == "backward"
        or (isinstance(statement.function, ir.Captured) and is_backward(statement.function.path))
    )


def is_backward(path: str) -> bool:
    """``backward`` or ``tlmem.backward``."""
    return path.rpartition(".")[2] == "backward"


# ---- records that are not needed ----


def unrecorded(function: ir.Function, shapes: Shapes) -> dict[int, int]:
    """Numbers of operations that need no record, with the numbers of the detaches behind them."""
    read: Counter[str] = Counter(n for each in walk(function.body) for n in reads(each))
    found: dict[int, int] = {}

    def visit(block: ir.Block) -> None:
        for op, behind in zip(block, block[1:], strict=False):
            if isinstance(op, ir.Op) and isinstance(behind, ir.Op) and behind.op == "detach":
                if only_detached(op, behind, read, shapes):
                    found[op.number] = behind.number
        for statement in block:
            for inner in blocks_of(statement):
                visit(inner)

    visit(function.body)
    return found


def only_detached(op: ir.Op, detach: ir.Op, read: Counter[str], shapes: Shapes) -> bool:
    """Whether the result of an operation is a tensor that is detached and nothing else."""
    target, rule = op.target, rule_of(op.op)
    if target is None or not is_temporary(target) or read[target] != 1:
        return False
    if detach.operands != (ir.Var(target),) or detach.options or detach.target is None:
        return False
    made = shapes.values.get(op.number, {}).get(target)
    if rule is None or rule.memory != FRESH or not rule.differentiable:
        return False
    return isinstance(made, TensorType) and made.grad is not False and not op.options
