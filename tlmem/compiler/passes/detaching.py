"""Records that nobody would read: ``detach(a - b)`` needs no record of the difference.

An operation whose result is only detached is computed with recording off; the result is what detach
would have given, in memory of its own. Does not cover: a record that somebody might read.
"""

from __future__ import annotations

from collections import Counter

from tlmem.compiler import ir
from tlmem.compiler.passes.abstract import TensorType
from tlmem.compiler.passes.shape_rules import FRESH, rule_of
from tlmem.compiler.passes.shapes import Shapes
from tlmem.compiler.walking import blocks_of, is_temporary, reads, walk


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
