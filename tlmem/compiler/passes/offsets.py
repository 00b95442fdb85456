"""Offsets: where in one buffer the planned results of a function go.

See also: ``tlmem.plan``, docs/decisions/planner.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from tlmem.compiler.passes.slots import Placed
from tlmem.planning.planner import plan

ALIGNMENT = 64
"""Bytes; that of all memory of the runtime."""
GOOD_ENOUGH = 1.02
"""A frame of so many times the lower bound is not searched for a smaller one."""
SEARCH_SECONDS = 0.1
"""CPU time for such a search."""


@dataclass(frozen=True)
class FrameLayout:
    """Where each planned result goes in the one buffer of a frame.

    Attributes:
        offsets: number of an operation -> bytes from the begin of the buffer.
        nbytes: of the buffer.
        lower_bound_bytes: the most that is needed at one place, each result rounded up to the
            alignment; no buffer can be smaller.
        apart_bytes: what the results need without sharing.
    """

    offsets: dict[int, int]
    nbytes: int
    lower_bound_bytes: int
    apart_bytes: int


def layout(placed: tuple[Placed, ...]) -> FrameLayout:
    """Packs results into one buffer; those that are needed at one place never overlap."""
    rows = [(each.life.first, each.life.last, rounded(each.nbytes), ALIGNMENT) for each in placed]
    found = plan(rows)
    enough = ceil(found.lower_bound_bytes * GOOD_ENOUGH)
    if found.peak_bytes > enough:
        found = plan(rows, capacity=enough, seconds=SEARCH_SECONDS)
    at = {each.number: int(o) for each, o in zip(placed, found.offsets, strict=True)}
    apart = sum(row[2] for row in rows)
    return FrameLayout(at, found.peak_bytes, found.lower_bound_bytes, apart)


def rounded(nbytes: int) -> int:
    """Bytes up to the next multiple of the alignment."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
