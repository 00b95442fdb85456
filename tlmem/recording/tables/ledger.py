"""Who held which object, from when to when: the ledger, and whether the counts agree with it.

Covers: one row for each (object, holder), from acquires, releases and everything that hands a count
on; the check that every count follows from the events.
Does not cover: names of holders in words (``holder_names``), frames for users (``runtime``).
See also: docs/format.md, "Ownership", for what each event does to whom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tlmem.events import (
    FIRST_FOREIGN_DEVICE,
    FIRST_RUNTIME_DEVICE,
    HOLDER_NUMBER_BITS,
    SATURATED_COUNT,
    HolderKind,
    Kind,
)
from tlmem.recording.format.grouping import group_order, group_starts
from tlmem.recording.format.pairing import Known, Pairing
from tlmem.recording.format.timeline import Timeline

FLOATING = np.uint64(HolderKind.FLOATING << HOLDER_NUMBER_BITS)
_KNOWN = 0
"""Stands for the kind of event of an object that a checkpoint lists: alive, holders unknown."""

_TO_FLOATING = (Kind.ALLOC, Kind.REALLOC, Kind.UNREGISTER, Kind.PROMOTE)
_TO_ARGUMENT = (Kind.ACQUIRE, Kind.REGISTER, Kind.ESCAPE)
_FROM_ARGUMENT = (Kind.RELEASE, Kind.UNREGISTER, Kind.PROMOTE)


@dataclass(frozen=True)
class Lives:
    """Events about objects, those of one life of one object together, in time order.

    Attributes:
        position: of each event in the timeline; -1 for an object that a checkpoint lists.
        kind, arg, count, device: of each event; kind 0 for what a checkpoint lists.
        life: number of the life that each event belongs to, ascending.
        row: for each life, its row in the ``Pairing``; -1 when its beginning was not seen.
    """

    position: np.ndarray
    kind: np.ndarray
    arg: np.ndarray
    count: np.ndarray
    device: np.ndarray
    life: np.ndarray
    row: np.ndarray


def lives_of(
    timeline: Timeline, pairing: Pairing, known: Known, at: np.ndarray, frees_end: bool = True
) -> Lives:
    """The events at these positions of the timeline, by object.

    Args:
        at: positions, ascending. A life begins where ``pairing`` says, at one of them.
        frees_end: what follows a free belongs to another life; else to the object that was freed.
    """
    before = len(known.number)
    begun = np.full(len(timeline) if len(at) else 0, -1, pairing.begins.dtype)
    if len(at):
        begun[pairing.begins] = np.arange(before, before + len(pairing.begins))
    key = np.concatenate([known.address, timeline.object[at]])
    device = np.concatenate([known.device, timeline.device[at]])
    # Handles are the same on all devices, and a misuse does not say which one it was.
    foreign = (device >= FIRST_FOREIGN_DEVICE) & (device < FIRST_RUNTIME_DEVICE)
    order, same = group_order(key, np.where(foreign, device, np.uint8(0)))
    position = np.concatenate([np.full(before, -1), at])[order]
    row = np.concatenate([np.arange(before), begun[at]])[order]
    kind = np.concatenate([np.full(before, _KNOWN, np.uint8), timeline.kind[at]])[order]
    starts = row >= 0
    starts[group_starts(same)[: len(order)]] = True
    if frees_end:
        starts[1:] |= kind[:-1] == Kind.FREE
    listed = np.zeros(before, np.uint64)
    return Lives(
        position=position,
        kind=kind,
        arg=np.concatenate([listed, timeline.arg[at]])[order],
        count=np.concatenate([listed.astype(np.uint16), timeline.count[at]])[order],
        device=device[order],
        life=np.cumsum(starts) - 1,
        row=row[starts],
    )


def owned_lives(timeline: Timeline, pairing: Pairing, known: Known) -> Lives:
    """All events that say who owns what, of the runtime and of every device that names holders."""
    passing = (timeline.kind >= Kind.ACQUIRE) & (timeline.kind <= Kind.ESCAPE)
    named = np.bincount(timeline.device[passing], minlength=256) > 0
    named[FIRST_RUNTIME_DEVICE:] = True
    named[:FIRST_FOREIGN_DEVICE] = False
    at = np.flatnonzero((timeline.kind <= Kind.ESCAPE) & named[timeline.device])
    return lives_of(timeline, pairing, known, at)


@dataclass(frozen=True)
class Ledger:
    """One row for each time that a holder held an object, in order of begin.

    Attributes:
        row: the object, as a row of the ``Pairing``; -1 when its beginning was not seen.
        holder: who, kind << 56 | number.
        begin, end: positions in the timeline; ``end`` is -1 while it is held.
        ended_by: kind of the event at ``end``; 0 while it is held.
        unmatched: positions of events in which a holder released what, as far as was seen, it did
            not hold, of objects whose whole life was seen.
    """

    row: np.ndarray
    holder: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    ended_by: np.ndarray
    unmatched: np.ndarray


def ledger_of(lives: Lives) -> Ledger:
    """Pairs each holder's acquires with its releases, the oldest first."""
    event, holder, takes = _steps(lives)
    life = lives.life[event]
    order, same = group_order(life, holder)
    taken = takes[order]
    group = np.zeros(len(order), np.int64)
    np.cumsum(~same, out=group[1:])
    lost = _without_beginning(taken, group)
    begins, ends = order[taken], order[~taken & ~lost]
    ender = _nth_to_nth(group[taken], group[~taken & ~lost], len(order))
    end = np.where(ender >= 0, event[ends[ender]] if len(ends) else -1, -1)
    # A free ends whatever is still held.
    freed = np.full(len(lives.row), -1, np.int64)
    free = np.flatnonzero(lives.kind == Kind.FREE)
    freed[lives.life[free]] = free
    end = np.where(end < 0, freed[life[begins]], end)
    unmatched = event[order[lost]]
    unmatched = unmatched[lives.row[lives.life[unmatched]] >= 0]
    unmatched = unmatched[_seen_whole(lives)[lives.life[unmatched]]]
    position = lives.position
    by_begin = _rising(position[event[begins]])
    begins, end = begins[by_begin], end[by_begin]
    held = end < 0
    return Ledger(
        row=lives.row[life[begins]],
        holder=holder[begins],
        begin=position[event[begins]],
        end=np.where(held, -1, position[end]),
        ended_by=np.where(held, np.uint8(0), lives.kind[end]),
        unmatched=np.sort(position[unmatched]),
    )


def _rising(values: np.ndarray) -> np.ndarray:
    """The order of whole numbers that are all different, without sorting."""
    place = np.full(int(values.max(initial=-1)) + 1, -1, np.int64)
    place[values] = np.arange(len(values))
    return place[place >= 0]


def _steps(lives: Lives) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What each event takes from one holder, and then gives to another one.

    Returns:
        The event of each step, in order, the holder, and whether it takes (else it gives up).
    """
    kind, arg = lives.kind, lives.arg
    count = len(kind)
    holder, there = np.zeros((count, 2), np.uint64), np.zeros((count, 2), bool)
    from_argument, from_floating = np.isin(kind, _FROM_ARGUMENT), kind == Kind.REGISTER
    escapes = kind == Kind.ESCAPE
    there[:, 0] = from_argument | from_floating | escapes
    holder[:, 0] = np.where(from_argument, arg, FLOATING)
    if escapes.any():
        holder[escapes, 0] = _scope_before(lives)[escapes]
    to_argument, to_floating = np.isin(kind, _TO_ARGUMENT), np.isin(kind, _TO_FLOATING)
    there[:, 1] = to_argument | to_floating
    holder[:, 1] = np.where(to_argument, arg, FLOATING)
    place = np.flatnonzero(there.reshape(-1))
    return place >> 1, holder.reshape(-1)[place], (place & 1).astype(bool)


def _scope_before(lives: Lives) -> np.ndarray:
    """For each event, the scope that took the object last; 0 when none was seen."""
    takes = (lives.kind == Kind.REGISTER) | (lives.kind == Kind.ACQUIRE)
    takes &= lives.arg >> np.uint64(HOLDER_NUMBER_BITS) == HolderKind.SCOPE
    last = np.maximum.accumulate(np.where(takes, np.arange(len(takes)), -1))
    found = (last >= 0) & (lives.life[last] == lives.life)
    return np.where(found, lives.arg[last], np.uint64(0))


def _without_beginning(taken: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Which steps give up what was not held: they stand in groups, in order."""
    if not len(taken):
        return np.empty(0, bool)
    depth = np.cumsum(np.where(taken, 1, -1))
    first = np.flatnonzero(np.diff(group, prepend=-1))
    depth -= (depth[first] - np.where(taken[first], 1, -1))[group]
    if int(depth.min()) >= 0:
        return np.zeros(len(taken), bool)
    # The lowest point so far of each group: later groups lie lower than all of the ones before.
    drop = group * (2 * len(taken) + 2)
    lowest = np.minimum.accumulate(np.minimum(depth, 0) - drop) + drop
    before = np.concatenate([[0], lowest[:-1]])
    before[first] = 0
    return ~taken & (depth < before)


def _nth_to_nth(begins: np.ndarray, ends: np.ndarray, groups: int) -> np.ndarray:
    """For each begin, the end with the same number in its group, or -1; both ascending by group."""
    each_begin, each_end = (np.bincount(which, minlength=groups) for which in (begins, ends))
    first_begin, first_end = np.cumsum(each_begin) - each_begin, np.cumsum(each_end) - each_end
    number = np.arange(len(begins)) - first_begin[begins]
    return np.where(number < each_end[begins], first_end[begins] + number, -1)


def _seen_whole(lives: Lives) -> np.ndarray:
    """For each life, whether it is one of the runtime and its beginning is among the events."""
    first = np.flatnonzero(np.diff(lives.life, prepend=-1))
    return (lives.kind[first] == Kind.ALLOC) & (lives.device[first] >= FIRST_RUNTIME_DEVICE)


def wrong_counts(lives: Lives) -> tuple[np.ndarray, np.ndarray]:
    """Where the count of an event is not what the events before it say.

    Returns:
        Positions in the timeline, ascending, and the count that follows from the events.
    """
    kind = lives.kind
    change = np.zeros(len(kind), np.int64)
    change[(kind == Kind.ALLOC) | (kind == Kind.ACQUIRE)] = 1
    change[kind == Kind.RELEASE] = -1
    count = np.cumsum(change)
    first = np.flatnonzero(np.diff(lives.life, prepend=-1))
    count -= (count[first] - change[first])[lives.life]
    frees = kind == Kind.FREE
    said = np.where(frees, lives.arg.view(np.int64), lives.count)
    expected = np.where(frees, count, np.minimum(count, SATURATED_COUNT))
    wrong = (said != expected) & _seen_whole(lives)[lives.life]
    positions, expected = lives.position[wrong], expected[wrong]
    order = np.argsort(positions)
    return positions[order], expected[order]


def count_problems(timeline: Timeline, lives: Lives) -> list[str]:
    """A sentence when counts in the events do not follow from the events before them.

    None means that every count of every object of the runtime was right, on every prefix.
    """
    wrong, expected = wrong_counts(lives)
    if not len(wrong):
        return []
    at = int(wrong[0])
    kind, handle = Kind(int(timeline.kind[at])), int(timeline.object[at])
    said = int(timeline.arg[at] if kind == Kind.FREE else timeline.count[at])
    return [
        f"counts cannot be trusted: {len(wrong)} of them do not follow from the events; the first "
        f"is that of object {handle:#x}, whose {kind.name.lower()} says {said} where "
        f"{int(expected[0])} follows"
    ]


def holder_problems(timeline: Timeline, ledger: Ledger) -> list[str]:
    """A sentence when a holder released what it did not hold."""
    if not len(ledger.unmatched):
        return []
    handle = int(timeline.object[ledger.unmatched[0]])
    return [
        f"holders cannot be trusted: {len(ledger.unmatched)} events give up what their holder does "
        f"not hold; the first is about object {handle:#x}"
    ]
