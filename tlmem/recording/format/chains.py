"""Chains of Python objects that keep an array alive, as the snapshots in a recording name them.

Covers: the record of one group of arrays with the same chain, or of a container, decoded and
checked.
Does not cover: chains in words (``tables.chain_text``), tables and objects (``tables.holdings``).
See also: docs/format.md, "Holding" and "Content".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tlmem.recording.format.limits import MOST_CHAIN_ADDRESSES, MOST_CHAIN_STEPS
from tlmem.recording.format.sanitize import whole

TOTALS_GROUP = 0xFFFFFFFF
"""Group of the last record of a snapshot: with it the snapshot is whole."""
INCOMPLETE = 1
"""Flag: the walk gave up before it had seen everything."""
COLLECTING = 2
"""Flag: Python's garbage collector was switched on."""
TRIGGERS = {1: "asked", 2: "mark", 3: "doubled", 4: "time", 5: "end"}
"""What made a snapshot be taken."""
UNTRACKED, CONTAINER, TYPE, CACHED = 1, 2, 3, 4
"""What a content is: arrays over memory that is not tracked, a container with its items, or a type
with its objects."""

_HEAD = struct.Struct("<QIBBHQQQIHBB")
_MOST_DIGITS = 18
_STEP = struct.Struct("<BBHI")


class StepKind(IntEnum):
    """What holds, in one step of a chain."""

    MODULE = 1
    LOCAL = 2
    CLOSURE = 3
    CLASS = 4
    DICT = 5
    LIST = 6
    TUPLE = 7
    SET = 8
    DEQUE = 9
    INSTANCE = 10
    LRU_CACHE = 11
    GENERATOR = 12
    EXCEPTION = 13
    VIEW = 14
    OBJECT_ARRAY = 15
    METHOD = 16
    CYCLE = 17
    OTHER = 18
    THREAD = 19
    GRAPH = 20
    EXIT = 21


BOUNDED = (StepKind.DEQUE, StepKind.LRU_CACHE)
"""Containers that may have a bound, which then stands behind their type."""


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One object of a chain: its type or name, its number of items, and by what it holds the next.

    ``edge`` is the name of a variable or attribute, a key in brackets, ``[]`` for any item, or
    empty where it has no name; of a cycle the way around it in words. ``most`` is how many items it
    may have, 0 where no bound is known.
    """

    kind: int
    type: str
    edge: str = ""
    items: int = 0
    most: int = 0

    @property
    def code(self) -> tuple[str, int, str]:
        """Function, line and file of a step that is a frame; else its type, 0 and nothing."""
        name, *rest = self.type.split("\n")
        file, line = rest if len(rest) == 2 else ("", "")
        return name, whole_number(line), file


@dataclass(frozen=True)
class Holding:
    """Arrays that one chain of holders keeps, at the moment of a snapshot.

    ``addresses`` are those of some of the memory that they own, evenly chosen; of ``runtime``
    objects the handles. ``held_bytes`` are those of the memory, ``used_bytes`` those of what the
    program sees of it. ``steps`` lead from the root to the array. The record that ends a snapshot
    has none; its ``used_bytes`` are the nanoseconds that the walk took, its ``addresses`` counters.
    ``collecting`` says that Python's garbage collector was on; False also where that is not
    recorded. Of a content, ``what`` says which: ``UNTRACKED`` arrays, a ``CONTAINER``, which is the
    last step and has ``arrays`` items, a ``TYPE``, the only step, of ``arrays`` objects, or
    ``CACHED``: each ``lru_cache`` with a bound; ``arrays`` items of at most ``held_bytes``.
    """

    ticks: int
    snapshot: int
    trigger: int
    incomplete: bool
    arrays: int
    held_bytes: int
    used_bytes: int
    group: int
    device: int
    addresses: NDArray[np.uint64]
    steps: tuple[ChainStep, ...]
    collecting: bool = False
    what: int = 0


def whole_number(text: str) -> int:
    """The number that a text is; 0 of one that is none, or that no line or bound has."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else 0


def parse(payload: bytes) -> Holding:
    """The holding in a meta record of its type.

    Raises:
        ValueError, struct.error: it makes no sense.
    """
    ticks, snapshot, trigger, flags, steps, arrays, held, used, group, addresses, device, what = (
        _HEAD.unpack_from(payload)
    )
    at = _HEAD.size + 8 * addresses
    if at > len(payload):
        raise ValueError("it has fewer addresses than it says")
    if steps > MOST_CHAIN_STEPS or addresses > MOST_CHAIN_ADDRESSES:
        raise ValueError("it is longer than any that a recorder writes")
    known = np.frombuffer(payload, "<u8", addresses, _HEAD.size).astype(np.uint64)
    found = []
    for _ in range(steps):
        kind, edge_bytes, type_bytes, items = _STEP.unpack_from(payload, at)
        at += _STEP.size
        middle, end = at + edge_bytes, at + edge_bytes + type_bytes
        if end > len(payload):
            raise ValueError("a step is longer than the record")
        edge, type_name = whole(_text(payload[at:middle])), _text(payload[middle:end])
        most = 0
        if kind in BOUNDED:
            type_name, _, bound = type_name.partition("\n")
            most = whole_number(bound)
        is_frame = kind in (StepKind.LOCAL, StepKind.GENERATOR) and type_name.count("\n") == 2
        found.append(
            ChainStep(kind, whole(type_name, but="\n" if is_frame else ""), edge, items, most)
        )
        at = end
    return Holding(
        ticks=ticks,
        snapshot=snapshot,
        trigger=trigger,
        incomplete=bool(flags & INCOMPLETE),
        arrays=arrays,
        held_bytes=held,
        used_bytes=used,
        group=group,
        device=device,
        addresses=known,
        steps=tuple(found),
        collecting=bool(flags & COLLECTING),
        what=what,
    )


def _text(data: bytes) -> str:
    """A text of the program, whatever bytes it has; lone surrogates, as in file names, stay."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "backslashreplace")
