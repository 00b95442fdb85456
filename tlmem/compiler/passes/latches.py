"""Loops whose turns begin without gradients: a ``for`` that goes backward in its turns (S24).

Not a ``while``, as in the seeds, and not ``tlmem.steps``, which clears them itself. A turn that is
left by ``break`` keeps its gradients.

Source: contracts S24.
"""

from __future__ import annotations

from dataclasses import replace

from tlmem.compiler import ir
from tlmem.compiler.walking import rebuilt, walk


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
