"""What an allocator had before its trace begins, and how large the blocks of the trace were.

A trace is the last part of what happened: what it frees without having allocated it, and what is
alive at the end without having been allocated in it, was there before. A trace names the bytes that
were asked for; the blocks in the segments have their own size, which is larger.

Covers: lives of blocks, segments before the trace, sizes. Does not cover: reading (``snapshot``),
events (``convert``).
See also: docs/format.md, "PyTorch".
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tlmem.importing.snapshot import (
    ALLOC,
    FREE_COMPLETED,
    FREE_REQUESTED,
    MAP,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    UNMAP,
    Snapshot,
    Trace,
)
from tlmem.recording.format.allocator_state import (
    ALLOCATED,
    EXPANDABLE,
    NEVER_REUSABLE,
    PENDING,
    USE_DTYPE,
)
from tlmem.units import format_bytes, format_count

GRAIN = 512
"""PyTorch's CUDA allocator hands out multiples of it."""
SMALL = 1 << 20
"""Blocks of up to so many bytes lie in segments of their own."""
MOSTLY = 0.9
"""Rules that give fewer of the known sizes are not those of the allocator."""
FIRST_DIVISION_BITS = 20
"""Settings for divisions begin with sizes of 1 MiB."""
NEAREST = 16
"""So many addresses behind a block are looked at for one that is allocated while it lives."""
MOST_STRETCHES = 20_000
"""Segments of one accelerator that are followed through a trace."""

Ints = NDArray[np.int64]


@dataclass
class Lives:
    """The blocks of one accelerator: those that are older than the trace, then those it allocates.

    ``begin`` and ``end`` are entries of the trace, -1 for before it and for never. ``size`` is that
    of the block, ``requested`` what was asked for; ``sure`` says that the size is that of a segment
    and does not follow from a rule. ``waiting`` are addresses of blocks that were given up before
    the trace and free in it. ``stray`` are frees of what was free.
    """

    address: Ints
    requested: Ints
    size: Ints
    begin: Ints
    end: Ints
    site: Ints
    sure: NDArray[np.bool_]
    stray: int = 0
    waiting: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    problems: list[str] = field(default_factory=list)


def lives_of(trace: Trace, blocks: np.ndarray, name: str) -> Lives:
    """The lives of all blocks of an accelerator, sizes as far as the segments have them.

    Args:
        trace: its entries. Stacks of frees that are not their own are taken out of it.
        blocks: of its segments at the end.
        name: of the accelerator, for sentences.
    """
    address: list[int] = []
    requested: list[int] = []
    begin: list[int] = []
    end: list[int] = []
    site: list[int] = []
    live: dict[int, int] = {}
    pending: set[int] = set()
    seen: set[int] = set()
    stray = overlapping = 0
    rows = np.flatnonzero(trace.action <= FREE_COMPLETED)
    # Where requests are recorded, a completion alone is of a block that was given up before. A ring
    # of one entry, the least that PyTorch keeps, may have the second half of a free alone.
    has_requests = bool((trace.action == FREE_REQUESTED).any()) or len(trace) == 1
    waiting: list[int] = []
    columns = (rows, trace.action[rows], trace.address[rows], trace.size[rows], trace.site[rows])
    for entry, action, at, size, where in zip(*(c.tolist() for c in columns), strict=True):
        if action == ALLOC:
            overlapping += at in live
            live[at] = len(address)
            pending.discard(at)
            address.append(at)
            requested.append(size)
            begin.append(entry)
            end.append(-1)
            site.append(where)
        elif at in live:
            end[live.pop(at)] = entry
            if action == FREE_REQUESTED:
                pending.add(at)
        elif at in pending:
            pending.discard(at)
        elif at not in seen and action == FREE_COMPLETED and has_requests:
            waiting.append(at)
        elif at not in seen:
            address.append(at)
            requested.append(size)
            begin.append(-1)
            end.append(entry)
            site.append(where)
            if action == FREE_REQUESTED:
                pending.add(at)
        else:
            stray += 1
        seen.add(at)
    made = Lives(
        address=np.array(address, np.int64),
        requested=np.array(requested, np.int64),
        size=np.array(requested, np.int64),
        begin=np.array(begin, np.int64),
        end=np.array(end, np.int64),
        site=np.array(site, np.int64),
        sure=np.zeros(len(address), bool),
        stray=stray,
        waiting=np.array(waiting, np.int64),
    )
    _say(made, stray, f"frees on {name} of memory that was free already, which were not counted")
    _say(made, overlapping, f"allocations on {name} where another block was alive")
    if not _frees_have_stacks(trace, made):
        trace.site[np.isin(trace.action, (FREE_REQUESTED, FREE_COMPLETED))] = 0
    else:
        made.site[made.begin < 0] = 0
    return _with_state(made, blocks, live, seen, name)


def _say(made: Lives, count: int, what: str) -> None:
    if count:
        made.problems.append(f"the trace has {format_count(count)} {what}")


def _frees_have_stacks(trace: Trace, made: Lives) -> bool:
    """Whether stacks of frees are their own.

    Recorded with ``context='alloc'``, an entry of a free repeats the stack of the allocation.
    """
    whole = (made.begin >= 0) & (made.end >= 0)
    freed = trace.site[made.end[whole]]
    return not whole.any() or bool((freed != made.site[whole]).any()) or not freed.any()


def _with_state(
    made: Lives,
    blocks: np.ndarray,
    live: dict[int, int],
    seen: set[int],
    name: str,
) -> Lives:
    """The lives with what the segments know: sizes, and blocks that the trace does not have."""
    rows = np.flatnonzero(blocks["state"] == ALLOCATED)
    columns = (blocks["address"], blocks["size"], blocks["requested"], blocks["site"])
    listed = {
        at: (size, asked, site)
        for at, size, asked, site in zip(*(c[rows].tolist() for c in columns), strict=True)
    }
    twice = len(rows) - len(listed)
    lost = lost_bytes = other = 0
    waiting = set(blocks["address"][blocks["state"] == PENDING].tolist())
    for at, row in live.items():
        if at not in listed:
            lost += at not in waiting
            lost_bytes += int(made.requested[row]) if at not in waiting else 0
            continue
        size, asked, site = listed[at]
        # Versions before 2.0 wrote the size of the block into the trace.
        whole = max(GRAIN, -(-asked // GRAIN) * GRAIN)
        other += int(made.requested[row]) not in (asked, whole, size)
        made.size[row], made.requested[row], made.sure[row] = size, asked, True
        made.site[row] = made.site[row] or site
    if len(blocks):
        _say(made, lost, f"blocks ({format_bytes(lost_bytes)}) on {name} that are neither freed nor"
                         " in the segments")  # fmt: skip
    _say(made, other, f"blocks on {name} whose size is another one in the segments")
    old = [(at, *about) for at, about in listed.items() if at not in live and at not in seen]
    risen = len(listed) - len(old) - sum(at in listed for at in live)
    _say(made, risen, f"frees on {name} of blocks that are in use in the segments")
    if twice:
        made.problems.append(f"{twice} blocks on {name} are listed twice")
    added = np.array(old, np.int64).reshape(-1, 4)
    none = np.full(len(added), -1, np.int64)
    sizes, asked = added[:, 1], added[:, 2]
    return Lives(
        np.concatenate([made.address, added[:, 0]]),
        np.concatenate([made.requested, asked]),
        np.concatenate([made.size, sizes]),
        np.concatenate([made.begin, none]),
        np.concatenate([made.end, none]),
        np.concatenate([made.site, added[:, 3]]),
        np.concatenate([made.sure, np.ones(len(added), bool)]),
        made.stray,
        np.union1d(made.waiting, np.array(sorted(waiting - seen), np.int64)),
        made.problems,
    )


@dataclass(frozen=True)
class Rules:
    """By what PyTorch's CUDA allocator makes blocks of requests.

    ``divisions`` are those of powers of two, by size from 1 MiB on; empty: none. What is left of a
    piece of memory stays with the block when it is too small to be used for another one;
    ``expandable`` segments are divided more finely, and blocks of ``largest_split`` not at all.
    """

    divisions: tuple[int, ...] = ()
    expandable: bool = False
    largest_split: int = 2**62

    def block(self, rounded_size: int, room: int) -> int:
        """The size of a block in a piece of memory with this room."""
        rest = room - rounded_size
        if rest < 0:
            return rounded_size
        if self.expandable or rounded_size <= SMALL:
            return rounded_size if rest >= GRAIN else room
        return rounded_size if rest > SMALL and rounded_size < self.largest_split else room


def with_sizes(
    lives: Lives, trace: Trace, segments: np.ndarray, before: list[tuple[int, int]], rules: Rules
) -> Lives:
    """The lives with the size of each block that is not in the segments at the end.

    The trace is followed forwards: where a block ends is seen from the blocks and segments behind
    it. What was asked for is taken where the segments say that another allocator was at work.
    """
    asked = rounded(lives.requested, rules.divisions)
    sure = lives.sure
    if not sure.any() or not len(segments):
        return lives
    known = lives.size[sure]
    if (known % GRAIN).any() or (known < asked[sure]).any():
        return lives
    room = room_of(lives, trace, segments, before)
    size = np.array(
        [rules.block(*pair) for pair in zip(asked.tolist(), room.tolist(), strict=True)], np.int64
    )
    right = size[sure & (lives.begin >= 0)] == lives.size[sure & (lives.begin >= 0)]
    if right.size and right.mean() < MOSTLY:
        size = asked
    return replace(lives, size=np.where(sure, lives.size, size))


def room_of(
    lives: Lives, trace: Trace, segments: np.ndarray, before: list[tuple[int, int]]
) -> Ints:
    """For each block, the bytes from its begin to what was behind it when it was allocated.

    Of blocks that are older than the trace it is what was behind them when that began, or the first
    allocation behind them while they live: it begins where a free piece begins, and what lies
    before it is theirs. 0 where it is not known.
    """
    room = np.zeros(len(lives.address), np.int64)
    old = lives.begin < 0
    used = sorted({*lives.address[old].tolist(), *lives.waiting.tolist()})
    held = Stretches(before)
    whole = segments[segments["flags"] & EXPANDABLE == 0]
    added = trace.address[trace.action == SEGMENT_ALLOC].tolist()
    starts = sorted(set(whole["address"].tolist()) - set(added))
    row_of = {int(entry): row for row, entry in enumerate(lives.begin.tolist()) if entry >= 0}

    completed = bool((trace.action == FREE_COMPLETED).any())
    released = FREE_COMPLETED if completed else FREE_REQUESTED

    def measure(at: int) -> int:
        ends = [held.end_of(at)]
        for places in (used, starts):
            place = bisect.bisect_right(places, at)
            ends += places[place : place + 1]
        return max(0, min(ends) - at)

    entries = np.flatnonzero(trace.action == ALLOC)
    places, first = np.unique(trace.address[entries], return_index=True)
    first = entries[first]
    behind = np.searchsorted(places, lives.address + 1)
    for row in np.flatnonzero(old).tolist():
        at, end = int(lives.address[row]), int(lives.end[row])
        near = slice(int(behind[row]), int(behind[row]) + NEAREST)
        within = places[near][(first[near] < end) | (end < 0)]
        room[row] = min([measure(at), *(within[:1] - at).tolist()])
    columns = (trace.action, trace.address, trace.size)
    for entry, (action, at, size) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        if action == ALLOC:
            room[row_of[entry]] = measure(at)
            insert(used, at)
        elif action == released:
            remove(used, at)
        elif action in (MAP, SEGMENT_ALLOC):
            held.put(at, at + size)
            if action == SEGMENT_ALLOC:
                insert(starts, at)
        elif action in (UNMAP, SEGMENT_FREE):
            held.take(at, at + size)
            if action == SEGMENT_FREE:
                remove(starts, at)
    return room


def insert(places: list[int], at: int) -> None:
    """Adds a number to a sorted list unless it is there."""
    place = bisect.bisect_left(places, at)
    if place == len(places) or places[place] != at:
        places.insert(place, at)


def remove(places: list[int], at: int) -> None:
    """Takes a number out of a sorted list if it is there."""
    place = bisect.bisect_left(places, at)
    if place < len(places) and places[place] == at:
        del places[place]


def rounded(asked: Ints, divisions: tuple[int, ...]) -> Ints:
    """The sizes that PyTorch's CUDA allocator rounds requests to."""
    size = np.maximum((asked + GRAIN - 1) // GRAIN * GRAIN, GRAIN)
    if not divisions:
        return size
    bits = np.frexp(np.maximum(asked, 1).astype(np.float64))[1].astype(np.int64) - 1
    number = np.array(divisions, np.int64)[np.clip(bits - FIRST_DIVISION_BITS, 0, 15)]
    used = (number > 1) & (asked > GRAIN * number) & (asked & (asked - 1) != 0)
    unit = np.maximum((np.int64(1) << bits) // np.maximum(number, 1), 1)
    return np.where(used, (asked + unit - 1) // unit * unit, size)


def segments_before(
    trace: Trace, segments: np.ndarray, name: str
) -> tuple[list[tuple[int, int]], list[str]]:
    """Address and size of the segments that were there before the trace, and what contradicts it.

    The trace is followed backwards from the segments at the end. Pieces that are mapped side by
    side are one.
    """
    held = Stretches(
        sorted(zip(segments["address"].tolist(), segments["total"].tolist(), strict=True))
    )
    problems = []
    twice = int(segments["total"].sum()) - sum(end - begin for begin, end in held)
    if twice:
        problems.append(f"the segments of {name} overlap by {format_bytes(twice)}")
    rows = np.flatnonzero((trace.action >= MAP) & (trace.action <= SEGMENT_FREE))[::-1]
    wrong = 0
    for action, at, size in zip(
        trace.action[rows].tolist(), trace.address[rows].tolist(), trace.size[rows].tolist(),
        strict=True,
    ):  # fmt: skip
        if len(held.begins) > MOST_STRETCHES:
            problems.append(f"the segments of {name} are too many to follow through the trace")
            return [], problems
        came = action in (MAP, SEGMENT_ALLOC)
        wrong += not (held.take(at, at + size) if came else held.put(at, at + size))
    if wrong and len(segments):
        problems.append(
            f"{format_count(wrong)} entries of the trace about segments of {name} do not fit the "
            "segments at the end"
        )
    return list(zip(held.begins, (e - b for b, e in held), strict=True)), problems


class Stretches:
    """Stretches of addresses that do not overlap, in order; some lie side by side."""

    def __init__(self, pieces: list[tuple[int, int]]) -> None:
        self.begins: list[int] = []
        self.ends: list[int] = []
        for at, size in pieces:
            self.put(at, at + size)

    def __iter__(self) -> zip[tuple[int, int]]:
        return zip(self.begins, self.ends, strict=True)

    def end_of(self, at: int) -> int:
        """The end of the stretch that a place is in; the place itself where it is in none."""
        place = bisect.bisect_right(self.begins, at) - 1
        return max(at, self.ends[place]) if place >= 0 else at

    def put(self, begin: int, end: int) -> bool:
        """Adds a stretch; says whether none of it was there."""
        if begin >= end:
            return True
        first = bisect.bisect_right(self.ends, begin)
        last = bisect.bisect_left(self.begins, end)
        if first < last:
            begin, end = min(begin, self.begins[first]), max(end, self.ends[last - 1])
        self.begins[first:last], self.ends[first:last] = [begin], [end]
        return first >= last

    def take(self, begin: int, end: int) -> bool:
        """Takes a stretch away; says whether all of it was there."""
        if begin >= end:
            return True
        first = bisect.bisect_right(self.ends, begin)
        last = bisect.bisect_left(self.begins, end)
        if first >= last:
            return False
        apart = self.ends[first : last - 1] != self.begins[first + 1 : last]
        whole = self.begins[first] <= begin and self.ends[last - 1] >= end and not apart
        left = [(self.begins[first], begin)] if self.begins[first] < begin else []
        right = [(end, self.ends[last - 1])] if self.ends[last - 1] > end else []
        kept = [*left, *right]
        self.begins[first:last] = [b for b, _ in kept]
        self.ends[first:last] = [e for _, e in kept]
        return whole


def uses_of(lives: Lives, trace: Trace, segments: np.ndarray) -> np.ndarray:
    """For each block its stream and pool, and how many allocations come before it may serve again.

    What the trace does not say of a block is that of the segment at the end that it lies in.
    """
    uses = np.zeros(len(lives.address), USE_DTYPE)
    entry = np.where(lives.begin >= 0, lives.begin, lives.end)
    known = entry >= 0
    uses["stream"][known] = trace.stream[entry[known]]
    around = _segment_of(lives.address, segments)
    inside = around >= 0
    names_pools = trace.pool is not None
    for name, column in (("pool_owner", 0), ("pool_number", 1)):
        if trace.pool is not None:
            uses[name][known] = trace.pool[entry[known], column]
        unknown = inside & ~known if names_pools else inside
        uses[name][unknown] = segments[name][around[unknown]]
    unknown = inside & ~known
    uses["stream"][unknown] = segments["stream"][around[unknown]]
    allocations = np.concatenate([[0], np.cumsum(trace.action == ALLOC)])
    given = _given_back(lives, trace)
    uses["reusable"] = NEVER_REUSABLE
    uses["reusable"][given >= 0] = allocations[given[given >= 0]]
    return uses


def _segment_of(address: Ints, segments: np.ndarray) -> Ints:
    """The segment at the end that each address lies in; -1: none."""
    if not len(segments):
        return np.full(len(address), -1, np.int64)
    order = np.argsort(segments["address"], kind="stable")
    begins = segments["address"][order].astype(np.int64)
    place = np.searchsorted(begins, address, side="right") - 1
    at = order[np.maximum(place, 0)]
    ends = segments["address"][at].astype(np.int64) + segments["total"][at].astype(np.int64)
    return np.where((place >= 0) & (address < ends), at, -1)


def _given_back(lives: Lives, trace: Trace) -> Ints:
    """The entry at which each block goes back to the allocator; -1: none."""
    completed = np.flatnonzero(trace.action == FREE_COMPLETED)
    asked = lives.end >= 0
    asked[asked] = trace.action[lives.end[asked]] == FREE_REQUESTED
    if not len(completed) or not asked.any():
        return lives.end.copy()
    codes, code = np.unique(trace.address[completed], return_inverse=True)
    span = len(trace) + 1
    keys = np.sort(code * span + completed)
    given = lives.end.copy()
    address = lives.address[asked]
    place = np.searchsorted(codes, address).clip(max=len(codes) - 1)
    key = place * span + lives.end[asked]
    at = np.searchsorted(keys, key)
    found = keys[at.clip(max=len(keys) - 1)]
    fits = (at < len(keys)) & (codes[place] == address) & (found // span == place)
    given[asked] = np.where(fits, found % span, -1)
    return given


def peak_of(lives: Lives, entries: int) -> dict[str, int]:
    """The most bytes in use at once, in blocks and as asked for, and after which entry."""
    change = np.zeros((2, entries + 1), np.int64)
    for row, values in enumerate((lives.size, lives.requested)):
        np.add.at(change[row], lives.begin + 1, values)
        ended = lives.end >= 0
        np.subtract.at(change[row], lives.end[ended] + 1, values[ended])
    held = np.cumsum(change, axis=1)
    at = int(held[0].argmax())
    return {
        "peak": int(held[0, at]),
        "peak_requested": int(held[1].max()),
        "peak_entry": at,
        "base": int(held[0, 0]),
        "base_requested": int(held[1, 0]),
        "live": int(held[0, -1]),
        "live_requested": int(held[1, -1]),
    }


def accelerators(snapshot: Snapshot) -> list[int]:
    """The numbers of the accelerators that the snapshot has something of."""
    found = {trace.accelerator for trace in snapshot.traces if len(trace)}
    return sorted(found | set(snapshot.segments["accelerator"].tolist()))
