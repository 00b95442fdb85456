"""Where the results of a function go in its frame: slots that several share one after the other
(S11), and offsets in one buffer.

Covers: which results can be in a slot at all; sharing by linear scan; packing into one buffer.
See also: ``tlmem.plan``, docs/decisions/planner.md.

Source: docs/seed-map.md, S11.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from tlmem.compiler import ir
from tlmem.compiler.passes.abstract import UNKNOWN
from tlmem.compiler.passes.liveness import Liveness
from tlmem.compiler.passes.origins import Life, Origins, is_plain
from tlmem.compiler.passes.shape_rules import FRESH, rule_of
from tlmem.compiler.passes.shapes import Shapes
from tlmem.compiler.walking import names_in, operands_of, walk
from tlmem.planning.planner import plan
from tlmem.runtime.core import CPU

ALIGNMENT = 64
"""Bytes; that of all memory of the runtime."""
GOOD_ENOUGH = 1.02
"""A frame of so many times the lower bound is not searched for a smaller one."""
SEARCH_SECONDS = 0.1
"""CPU time for such a search."""


def linear_scan(lives: Sequence[tuple[int, int]]) -> list[int]:
    """A slot for each life ``(first, last)``, both ends inclusive, numbered from 0.

    Lives that overlap never share a slot, and there are no more slots than lives that overlap at
    one place: a life takes the lowest slot that is free where it begins.
    """
    slots = [0] * len(lives)
    running: list[tuple[int, int]] = []  # (last, slot)
    free: list[int] = []
    made = 0
    for place in sorted(range(len(lives)), key=lambda place: lives[place]):
        first, last = lives[place]
        while running and running[0][0] < first:
            heapq.heappush(free, heapq.heappop(running)[1])
        if not free:
            heapq.heappush(free, made)
            made += 1
        slots[place] = heapq.heappop(free)
        heapq.heappush(running, (last, slots[place]))
    return slots


@dataclass(frozen=True)
class SlotResult:
    """A result that is computed into a slot.

    Attributes:
        number: of its operation.
        name: the variable it is given to.
        life: from where to where it is needed.
        slot: number of the slot.
        nbytes: bytes it needs.
    """

    number: int
    name: str
    life: Life
    slot: int
    nbytes: int


@dataclass(frozen=True)
class Slots:
    """The slots of a function.

    Attributes:
        placed: the results in slots, in the order of the program.
        refused: number of an operation that makes memory -> why it is in no slot.
    """

    placed: tuple[SlotResult, ...]
    refused: dict[int, str]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of each slot: the most that one of its results needs."""
        count = max((each.slot + 1 for each in self.placed), default=0)
        return tuple(
            max(each.nbytes for each in self.placed if each.slot == slot) for slot in range(count)
        )

    def neighbours(self, number: int) -> tuple[str, ...]:
        """The names of other results in the slot of this one."""
        slots = {each.number: each.slot for each in self.placed}
        return tuple(
            each.name
            for each in self.placed
            if each.number != number and each.slot == slots.get(number)
        )


def able(op: ir.Op) -> str:
    """Any operation can be computed into a slot, for who does not ask."""
    return ""


def slots(
    function: ir.Function,
    shapes: Shapes,
    liveness: Liveness,
    found: Origins,
    unable: Callable[[ir.Op], str] = able,
    copied: bool = False,
) -> Slots:
    """The slots of a numbered function.

    Args:
        unable: says why an operation cannot be computed into given memory; empty when it can.
        copied: whether what is returned is copied to the caller's memory, so that it may be in a
            slot itself.
    """
    lives = {life.memory: life for life in found.lives}
    refused: dict[int, str] = {}
    fit: list[ir.Op] = []
    for statement in walk(function.body):
        if not isinstance(statement, ir.Op) or not makes_memory(statement, found):
            continue
        if all(map(is_plain, shapes.values.get(statement.number, {0: UNKNOWN}).values())):
            continue  # an operation between numbers
        why = reason(statement, shapes, liveness, found, copied) or unable(statement)
        if why:
            refused[statement.number] = why
        else:
            fit.append(statement)
    scanned = linear_scan([(lives[op.number].first, lives[op.number].last) for op in fit])
    placed = (
        SlotResult(op.number, op.target or "", lives[op.number], slot, nbytes_of(op, shapes))
        for op, slot in zip(fit, scanned, strict=True)
    )
    return Slots(tuple(placed), refused)


def nbytes_of(op: ir.Op, shapes: Shapes) -> int:
    """Bytes of a result that is known."""
    made = shapes.tensor(op.number, op.target or "")
    return (made.nbytes or 0) if made else 0


def makes_memory(op: ir.Op, found: Origins) -> bool:
    """Whether an operation that is reached gives a tensor with memory of its own."""
    rule = rule_of(op.op)
    return rule is not None and rule.memory == FRESH and op.number in found.before


def reason(
    op: ir.Op, shapes: Shapes, liveness: Liveness, found: Origins, copied: bool = False
) -> str:
    """Why a result is in no slot; empty when it can be in one. ``copied`` as of ``slots``."""
    rule, made = rule_of(op.op), shapes.tensor(op.number, op.target or "")
    if op.target is None:
        return "nothing uses it"
    if rule is None or not rule.out:
        return f"{op.op} takes no destination"
    if any(name == "out" for name, _ in op.options):
        return "it has a destination"
    if made is None or made.nbytes is None:
        return "its shape or dtype is not known"
    if not made.nbytes:
        return "it needs no memory"
    if made.grad is not False:
        return "it may need a gradient"
    if made.device != CPU:
        return "it is on another device"
    if op.number in found.escaped and not (copied and op.number not in found.shared):
        return found.escaped[op.number]
    return meets_itself(op, liveness, found)


def meets_itself(op: ir.Op, liveness: Liveness, found: Origins) -> str:
    """Why the result of the last turn is still needed when a loop computes it again."""
    rule, env = rule_of(op.op), found.before[op.number]
    others = liveness.after[op.number] - {op.target}
    if any(op.number in env.get(name, ()) for name in others):
        return "the result of the last turn is still needed"
    read = {name for operand in operands_of(op) for name in names_in(operand)}
    if any(op.number in env.get(name, ()) for name in read) and not (rule and rule.elementwise):
        return "it is computed from its own last result"
    return ""


# ---- offsets: where in the one buffer of a frame the results go ----


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


def layout(placed: tuple[SlotResult, ...]) -> FrameLayout:
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
