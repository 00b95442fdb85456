"""Who strands the memory: which blocks keep segments from going back to the driver.

Covers: at the moment at which most was reserved, and at the end, the segments (of expandable ones:
pages) that are free in part and held by some block; these blocks by line, with module and holder.
Does not cover: what would be reserved otherwise (``answers``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.holders.snapshots import Snapshots, holders_of
from tlmem.analysis.model import StackFrame
from tlmem.analysis.peak.blocks import blocks_of
from tlmem.analysis.peak.modules import modules_of
from tlmem.analysis.places import Places
from tlmem.replaying.cuda import FREE_PART, SMALL_SEGMENT, Simulator
from tlmem.replaying.settings import MIB, Settings
from tlmem.replaying.trace import Trace

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

MOST_LINES = 20
MOST_NAMES = 3
"""Modules and holders that are named of a line."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Keeper:
    """The blocks of one line that keep segments.

    ``count`` blocks of together ``bytes`` lie in ``segments`` that are free in part; ``alone`` of
    these would be free as a whole without this line, and have ``stranded_bytes`` free;
    ``shared_bytes`` are free in the others. ``object`` is the smallest of the blocks.
    """

    site: StackFrame
    count: int
    bytes: int
    segments: int
    alone: int
    stranded_bytes: int
    shared_bytes: int
    object: int
    modules: tuple[str, ...]
    holders: tuple[str, ...]


@dataclass(frozen=True)
class Stranded:
    """Reserved memory at one moment as a sum: in blocks, free within segments that are held
    (``stranded_bytes``), and in segments that are free as a whole.

    ``held`` is how many segments are free in part, of ``segments``; ``pages`` says that pages of
    expandable segments are counted. ``lines`` are those with most stranded bytes first.
    """

    time_ns: int
    reserved_bytes: int
    block_bytes: int
    stranded_bytes: int
    whole_free_bytes: int
    segments: int
    held: int
    pages: bool
    lines: tuple[Keeper, ...]
    hidden_lines: int


def stranded(recording: Recording, trace: Trace, settings: Settings) -> tuple[Stranded, Stranded]:
    """At the peak of what is reserved on a roomy device, and at the end.

    Raises:
        MemoryError, Contradiction.
    """
    first = Simulator(settings.on(0), trace)
    first.run(trace.events)
    figures = first.figures()
    until = figures.peak_event + 1
    second = Simulator(settings.on(0), trace)
    second.run(trace.events[:until])
    naming = _Naming(recording, trace)
    moments = []
    for simulator, event in ((second, until - 1), (first, len(trace.events) - 1)):
        time_ns = int(trace.time_ns[event]) if event >= 0 else 0
        moments.append(_at(simulator.parts(), trace, settings, naming, time_ns))
    return moments[0], moments[1]


class _Naming:
    """Lines, modules and holders of blocks."""

    def __init__(self, recording: Recording, trace: Trace) -> None:
        self.trace = trace
        places = Places.of(recording)
        site = np.where(trace.site < len(places.group_of_site), trace.site, 0)
        self.line = places.group_of_site[site]
        self.frames = places.frames
        self.snapshots = Snapshots(recording)
        every = blocks_of(recording)
        self.modules = modules_of(recording, every)
        self.row = np.searchsorted(every.number, trace.number)

    def modules_of(self, blocks: Ints) -> tuple[str, ...]:
        """The modules that most of the blocks belong to."""
        number, counts = np.unique(self.modules.path[self.row[blocks]], return_counts=True)
        order = np.argsort(-counts[number >= 0], kind="stable")[:MOST_NAMES]
        known = number[number >= 0][order].tolist()
        return tuple(self.modules.text(self.modules.paths[each]) for each in known)

    def holders_of(self, blocks: Ints) -> tuple[str, ...]:
        """Who held most of the blocks, as a snapshot saw."""
        chains = self.snapshots.chains_of(np.sort(self.trace.number[blocks]))
        return tuple(holder.name for holder in holders_of(chains)[:MOST_NAMES])


def _at(
    parts: np.ndarray, trace: Trace, settings: Settings, naming: _Naming, time_ns: int
) -> Stranded:
    unit, size, block = _pieces(parts, settings)
    units, unit = np.unique(unit, return_inverse=True)
    unit = unit.reshape(-1)
    is_used = block != FREE_PART
    used = np.bincount(unit[is_used], weights=size[is_used], minlength=len(units)).astype(np.int64)
    free = np.bincount(unit[~is_used], weights=size[~is_used], minlength=len(units)).astype(
        np.int64
    )
    held = (used > 0) & (free > 0)
    keeps = np.flatnonzero(is_used & held[unit])
    lines = _lines(trace, naming, unit[keeps], block[keeps].astype(np.int64), free)
    return Stranded(
        time_ns=time_ns,
        reserved_bytes=int(parts["bytes"].sum()),
        block_bytes=int(used.sum()),
        stranded_bytes=int(free[held].sum()),
        whole_free_bytes=int(free[used == 0].sum()),
        segments=len(units),
        held=int(held.sum()),
        pages=bool(len(parts) and parts["expandable"].any()),
        lines=tuple(lines[:MOST_LINES]),
        hidden_lines=max(0, len(lines) - MOST_LINES),
    )


def _pieces(parts: np.ndarray, settings: Settings) -> tuple[Ints, Ints, NDArray[np.uint32]]:
    """Parts cut at the ends of pages: the segment or page of each piece, its bytes, its block."""
    begin = parts["address"].astype(np.int64)
    segment = parts["segment"].astype(np.int64)
    size = parts["bytes"].astype(np.int64)
    page = np.where(parts["small"] > 0, SMALL_SEGMENT, settings.large_segment_size_mb * MIB)
    page = np.where(parts["expandable"] > 0, page, np.int64(1) << 62)
    first, last = (begin - segment) // page, (begin + size - 1 - segment) // page
    counts = last - first + 1
    row = np.repeat(np.arange(len(parts)), counts)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    number = first[row] + nth
    at = segment[row] + number * np.where(page[row] < 1 << 62, page[row], 0)
    low = np.maximum(begin[row], at)
    high = np.where(page[row] < 1 << 62, at + page[row], begin[row] + size[row])
    return at, np.minimum(begin[row] + size[row], high) - low, parts["block"][row]


def _lines(trace: Trace, naming: _Naming, unit: Ints, block: Ints, free: Ints) -> list[Keeper]:
    """The lines of blocks in segments that are free in part.

    Args:
        unit, block: of each piece of these blocks.
        free: bytes of each segment.
    """
    line = naming.line[block].astype(np.int64)
    pairs = np.unique(np.column_stack([unit, line]), axis=0)
    keepers = np.bincount(pairs[:, 0], minlength=len(free)) if len(pairs) else free * 0
    made = []
    for number in np.unique(line).tolist():
        mine = np.unique(block[line == number])
        units = pairs[pairs[:, 1] == number, 0]
        alone = units[keepers[units] == 1]
        sizes = trace.size[mine]
        made.append(
            Keeper(
                site=naming.frames[number],
                count=len(mine),
                bytes=int(sizes.sum()),
                segments=len(units),
                alone=len(alone),
                stranded_bytes=int(free[alone].sum()),
                shared_bytes=int(free[units].sum() - free[alone].sum()),
                object=int(trace.number[mine[sizes.argmin()]]),
                modules=naming.modules_of(mine),
                holders=(),
            )
        )
    made.sort(key=lambda each: (-each.stranded_bytes, -each.shared_bytes))
    for place, each in enumerate(made[:MOST_LINES]):
        number = naming.frames.index(each.site)
        holders = naming.holders_of(np.unique(block[line == number]))
        made[place] = replace(each, holders=holders)
    return made
