"""Which objects of a recording would a planner place, and when is each of them there?

Covers: the objects of one memory on a clock of sections, what is alive in each of these, the part
around the peak when there are too many objects. Does not cover: placing them (``placing``,
``planner``), who stands at the peak (``peak_lines``).

A *section* is a run of allocations without a free between them: two objects were alive at once
exactly when they share a section, so that sections are all that a plan needs of time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.lifetimes import NEVER
from tlmem.analysis.peak.blocks import HOST as HOST
from tlmem.analysis.peak.blocks import memory_names
from tlmem.events import Device

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

MOST_OBJECTS = 20_000
"""So many objects are placed when nothing else is asked for; more take minutes."""
UNIT_BYTES = 16
"""Sizes are rounded up to this, the alignment of what the C allocator gives."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PlannedLives:
    """Objects that have bytes, in order of birth.

    ``first`` to ``last``, both inclusive, are their sections; ``born`` and ``died`` are in ns
    (``NEVER`` of what is alive); ``row`` is the row of each in the table of objects; ``size`` is
    in bytes. ``load`` is what is alive in each section at its end, ``time_ns`` when that is.
    ``of`` is how many objects there are in the recording, ``merged`` how many of the smallest the
    last row stands for (0: each row is one object).
    """

    memory: str
    first: Ints
    last: Ints
    size: Ints
    born: Ints
    died: Ints
    row: Ints
    load: Ints
    time_ns: Ints
    of: int
    merged: int = 0

    def __len__(self) -> int:
        return len(self.first)

    @property
    def peak_bytes(self) -> int:
        """The most that is alive at once."""
        return int(self.load.max(initial=0))

    @property
    def peak_section(self) -> int:
        """The first section in which it is; -1 without objects."""
        return int(self.load.argmax()) if len(self.load) else -1

    @property
    def peak_ns(self) -> int:
        """When it was reached first; 0 without objects."""
        return int(self.time_ns[self.peak_section]) if len(self.load) else 0

    @property
    def is_whole(self) -> bool:
        """Whether every object of the recording is there by itself."""
        return self.merged == 0 and len(self) == self.of

    @property
    def units(self) -> Ints:
        """Sizes as they are placed: rounded up to ``UNIT_BYTES``."""
        return -(-self.size // UNIT_BYTES) * UNIT_BYTES


def memory_of(recording: Recording) -> NDArray[np.object_]:
    """The memory that each object shares with others, by name; empty for what no device gave.

    Each accelerator has memory of its own.
    """
    table = recording.objects
    device = table["device"].to_numpy(np.uint8)
    if not (device == Device.TORCH_ACCELERATOR).any():
        return memory_names(device, np.empty(0, np.uint64), {})
    return memory_names(device, table["address"].to_numpy(np.uint64), recording.info)


def memories(recording: Recording) -> list[PlannedLives]:
    """The objects of each memory in which there are any, the one with the highest peak first."""
    names = set(memory_of(recording).tolist())
    every = [planned_lives(recording, name) for name in names if name]
    return sorted(
        (lives for lives in every if len(lives)), key=lambda each: (-each.peak_bytes, each.memory)
    )


def planned_lives(recording: Recording, memory: str = HOST) -> PlannedLives:
    """Every object of one memory that has bytes of its own."""
    table = recording.objects
    size = table["size_bytes"].to_numpy(np.int64)
    chosen = size > 0
    chosen &= memory_of(recording) == memory
    born = table["born_ns"].to_numpy(np.int64)
    row = np.flatnonzero(chosen)
    which: slice | Ints = row
    if (np.diff(born[row]) < 0).any():
        row = which = row[np.argsort(born[row], kind="stable")]
    elif len(row) == len(table):
        which = slice(None)
    died = table["died_ns"].to_numpy(np.int64)
    died = np.where(died < 0, NEVER, died)[which]
    stride = int((recording.fold or {}).get("live_stride", 1) or 1)
    size = size[which]
    if stride > 1:
        # Where a size limit thinned the list of live objects, each of them stands for several.
        size = size * np.where(table["folded"].to_numpy(bool)[which], stride, 1)
    return on_sections(memory, size, born[which], died, row)


def on_sections(memory: str, size: Ints, born: Ints, died: Ints, row: Ints) -> PlannedLives:
    """Objects in order of birth, with their sections and what is alive in each."""
    ends = np.sort(died[died < NEVER])
    freed = np.searchsorted(ends, born, side="right")
    first = np.cumsum(np.diff(freed, prepend=freed[:1]) != 0)
    before = np.searchsorted(born, died, side="left")
    last = np.maximum(first[before - 1], first) if len(born) else first
    count = int(first[-1]) + 1 if len(born) else 0
    closes = np.flatnonzero(np.diff(first, append=count)) if count else first
    return PlannedLives(
        memory=memory,
        first=first,
        last=last,
        size=size,
        born=born,
        died=died,
        row=row,
        load=load_of(first, last, size, count),
        time_ns=born[closes],
        of=len(born),
    )


def load_of(first: Ints, last: Ints, size: Ints, sections: int) -> Ints:
    """Bytes alive in each section."""
    change = np.zeros(sections + 1, np.int64)
    np.add.at(change, first, size)
    np.subtract.at(change, last + 1, size)
    load = change[:-1]
    return np.cumsum(load, out=load)


def around_the_peak(lives: PlannedLives, most: int = MOST_OBJECTS) -> PlannedLives:
    """At most so many objects: all of them, or those that were alive nearest to the peak.

    The sections that are kept are as many before the peak as after it, as far as there are any. Of
    more objects at the peak alone the smallest become one, of their sum.
    """
    if len(lives) <= most:
        return lives
    peak, sections = lives.peak_section, len(lives.load)
    ended, begun = np.sort(lives.last), lives.first

    def count(reach: int) -> int:
        until = np.searchsorted(begun, min(sections - 1, peak + reach), side="right")
        return int(until - np.searchsorted(ended, max(0, peak - reach), side="left"))

    low, high = 0, sections
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) <= most else (low, middle)
    from_section, to_section = max(0, peak - low), min(sections - 1, peak + low)
    inside = np.flatnonzero((lives.last >= from_section) & (lives.first <= to_section))
    kept = replace(
        lives,
        first=np.maximum(lives.first[inside], from_section) - from_section,
        last=np.minimum(lives.last[inside], to_section) - from_section,
        size=lives.size[inside],
        born=lives.born[inside],
        died=lives.died[inside],
        row=lives.row[inside],
        load=lives.load[from_section : to_section + 1],
        time_ns=lives.time_ns[from_section : to_section + 1],
    )
    return kept if len(kept) <= most else with_the_smallest_as_one(kept, most)


def with_the_smallest_as_one(lives: PlannedLives, most: int) -> PlannedLives:
    """So many rows: the largest objects, and one for all others, as long as any of them."""
    order = np.argsort(-lives.size, kind="stable")
    large, small = np.sort(order[: most - 1]), order[most - 1 :]

    def joined(values: Ints, of_small: int) -> Ints:
        return np.append(values[large], np.int64(of_small))

    return replace(
        lives,
        first=joined(lives.first, int(lives.first[small].min())),
        last=joined(lives.last, int(lives.last[small].max())),
        size=joined(lives.size, int(lives.size[small].sum())),
        born=joined(lives.born, int(lives.born[small].min())),
        died=joined(lives.died, int(lives.died[small].max())),
        row=joined(lives.row, -1),
        merged=len(small),
    )
