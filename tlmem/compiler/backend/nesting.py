"""Which temporaries become part of an expression again, as in the source.

A temporary that is defined once and read once, in the same block, need not be a variable: Python
keeps it on its stack and lets go of it where it is consumed. What is not consumed in the order of
the stack becomes a variable.
"""

from __future__ import annotations

from collections import Counter

from tlmem.compiler import ir
from tlmem.compiler.walking import blocks_of, defines, is_temporary, reads, walk

NESTABLE = (ir.Op, ir.Call, ir.Plain, ir.GetField, ir.MakeStruct, ir.Assign)


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
