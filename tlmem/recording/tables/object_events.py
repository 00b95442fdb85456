"""Every event about one object, with what it takes paired with what gives it back.

Covers: which events speak of an object in one of its lives, who they speak of, the pairs.
Does not cover: who holds what (``ledger``), an object's history as users see it
(``analysis.ledger``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tlmem.events import FIRST_RUNTIME_DEVICE, HOLDER_NUMBER_BITS, HolderKind, Kind
from tlmem.recording.format.pairing import Known, Pairing
from tlmem.recording.format.timeline import CANCELLED, RESIZE_FIRST, Timeline
from tlmem.recording.tables.holder_names import NUMBER_MASK, HolderNames
from tlmem.recording.tables.ledger import FLOATING, Ledger

ToNs = Callable[[np.ndarray], np.ndarray]
_BITS = np.uint64(HOLDER_NUMBER_BITS)
_NAMES_A_HOLDER = (
    *(Kind.ACQUIRE, Kind.RELEASE, Kind.REGISTER, Kind.UNREGISTER, Kind.PROMOTE, Kind.ESCAPE),
    *(Kind.POOL_HIT, Kind.POOL_PUT, Kind.POOL_DROP, Kind.POOL_PRUNE),
    *(Kind.TAPE_SAVE, Kind.TAPE_UNSAVE, Kind.MISUSE),
)
_ABOUT_AN_OBJECT = (
    *(Kind.ALLOC, Kind.FREE, Kind.REALLOC, *_NAMES_A_HOLDER, Kind.SLOT_GET, Kind.SLOT_GROW),
    *(Kind.TAPE_RECORD, Kind.DETACH, Kind.HOLDERS, Kind.COPY),
)
_HAS_BYTES = (Kind.ALLOC, Kind.REALLOC, Kind.COPY)


@dataclass(frozen=True)
class EventClock:
    """When things were, as positions in the table of events, without that table.

    Attributes:
        ticks: of each event.
        kinds: of events that there are.
        marks: positions of the marks, ascending.
        born: of each row of ``objects``, the first event that begins it; -1: before all events.
        died: the last free of it; -1: none.
        unsure: rows that may have been replaced, or spoken of after they ended.
    """

    ticks: np.ndarray
    kinds: frozenset[int]
    marks: np.ndarray
    born: np.ndarray
    died: np.ndarray
    unsure: np.ndarray


def _touching(timeline: Timeline, pairing: Pairing) -> np.ndarray:
    """Which of a pairing's events are halves of resizes that failed."""
    if not timeline.role.any():
        return np.empty(0, np.int64)
    return np.flatnonzero(timeline.role[pairing.events] == CANCELLED)


def event_clock(timeline: Timeline, pairing: Pairing) -> EventClock:
    """The clock of a recording's events."""
    before = len(pairing.known.number)
    born = np.empty(len(pairing.size), pairing.begins.dtype)
    born[:before], born[before:] = -1, pairing.begins
    died = pairing.ended_by.copy()
    died[pairing.replaced] = -1
    touching = _touching(timeline, pairing)
    touching = touching[pairing.row_of_event[touching] >= 0]
    rows, at = pairing.row_of_event[touching], pairing.events[touching]
    frees = timeline.kind[at] == Kind.FREE
    np.maximum.at(died, rows[frees], at[frees])
    again = ~frees & (born[rows] < 0)
    # Of several values for one place numpy keeps the last, here the first event.
    born[rows[again][::-1]] = at[again][::-1]
    return EventClock(
        ticks=timeline.ticks,
        kinds=frozenset(np.flatnonzero(np.bincount(timeline.kind, minlength=256)).tolist()),
        marks=np.flatnonzero(timeline.kind == Kind.MARK),
        born=born,
        died=died,
        unsure=np.union1d(pairing.replaced, rows),
    )


def history_table(
    timeline: Timeline,
    pairing: Pairing,
    known: Known,
    ledger: Ledger,
    names: HolderNames,
    to_ns: ToNs,
    number: int,
) -> pd.DataFrame:
    """The events of one object (its number), in time order; empty when there is none.

    Returns:
        ``event`` (row of ``events``), ``time_ns``, ``thread``, ``kind``, ``resize`` and ``failed``
        (half of a resize, of one that failed), ``holder`` in words, ``size_bytes`` of what begins
        or is copied, ``count`` after the event, ``site``; ``ended_by`` and ``began_at``: the row
        here that ends what this one takes, that took what this one ends, -1 for none;
        ``unpaired``: what this one acquires is never released.
    """
    row = _row_of(pairing, known, number)
    at = _positions(timeline, pairing, known, row) if row >= 0 else np.empty(0, np.int64)
    kind, arg = timeline.kind[at], timeline.arg[at]
    named = np.isin(kind, _NAMES_A_HOLDER) & (arg > 0)
    holder = np.full(len(at), "", object)
    holder[named] = _texts(pairing, timeline, names, arg[named])
    role = timeline.role[at]
    return pd.DataFrame(
        {
            "event": at,
            "time_ns": to_ns(timeline.ticks[at]),
            "thread": timeline.thread[at],
            "kind": kind,
            "resize": (role >= RESIZE_FIRST) & (role < CANCELLED),
            "failed": role == CANCELLED,
            "holder": holder,
            "size_bytes": np.where(np.isin(kind, _HAS_BYTES) & (role != CANCELLED), arg, 0),
            "count": timeline.count[at],
            "site": timeline.site[at],
            **_pairs(ledger, row, at),
        },
    )


def _row_of(pairing: Pairing, known: Known, number: int) -> int:
    """The row of an object, -1 for none: new ones are numbered in order, after the known ones."""
    if number >= known.next_number:
        row = len(known.number) + number - known.next_number
        return row if row < len(pairing.size) else -1
    found = np.flatnonzero(known.number == number)
    return int(found[0]) if len(found) else -1


def _positions(timeline: Timeline, pairing: Pairing, known: Known, row: int) -> np.ndarray:
    """Where in the timeline the events about one life of an object stand."""
    before = len(known.number)
    begin = -1 if row < before else int(pairing.begins[row - before])
    address = known.address[row] if row < before else timeline.object[begin]
    device = int(known.device[row] if row < before else timeline.device[begin])
    at = np.flatnonzero(timeline.object == address)
    kind = timeline.kind[at]
    at = at[np.isin(kind, _ABOUT_AN_OBJECT)]
    if device >= FIRST_RUNTIME_DEVICE:
        # A handle is never used again; a misuse does not always say which device it is from.
        runtime = timeline.device[at] >= FIRST_RUNTIME_DEVICE
        return at[runtime | (timeline.kind[at] == Kind.MISUSE)]
    at = at[(timeline.device[at] == device) & (at >= begin)]
    # Memory lies where other memory lay before: until its end, and misuses until the next begin.
    which = np.searchsorted(pairing.begins, at).clip(max=max(len(pairing.begins) - 1, 0))
    begins = at[pairing.begins[which] == at] if len(pairing.begins) else at[:0]
    later = begins[begins > begin]
    end, ended = int(later[0]) if len(later) else len(timeline), int(pairing.ended_by[row])
    of_misuse = timeline.kind[at] == Kind.MISUSE
    last = ended if ended >= 0 else end
    return at[(at <= last) & (at < end) | of_misuse & (at < end)]


def _texts(
    pairing: Pairing, timeline: Timeline, names: HolderNames, holders: np.ndarray
) -> np.ndarray:
    """Holders in words; views with the number of the view, which is an object too."""
    texts = names.texts(holders)
    views = np.flatnonzero(holders >> _BITS == HolderKind.VIEW)
    if not len(views):
        return texts
    ours = np.flatnonzero(timeline.device[pairing.begins] >= FIRST_RUNTIME_DEVICE)
    if not len(ours):
        return texts
    handles = timeline.object[pairing.begins[ours]]
    order = np.argsort(handles, kind="stable")
    wanted = holders[views] & NUMBER_MASK
    at = order[np.searchsorted(handles, wanted, sorter=order).clip(max=len(order) - 1)]
    known = handles[at] == wanted
    first = len(pairing.size) - len(pairing.begins)
    numbers = pairing.number[first + ours[at[known]]]
    texts[views[known]] = [f"view, object {number}" for number in numbers.tolist()]
    return texts


def _pairs(ledger: Ledger, row: int, at: np.ndarray) -> dict[str, np.ndarray]:
    """Which row of the table ends what a row takes, which began what it ends, what stays open."""
    ended_by = np.full(len(at), -1, np.int64)
    began_at = np.full(len(at), -1, np.int64)
    unpaired = np.zeros(len(at), bool)
    mine = np.flatnonzero(ledger.row == row) if row >= 0 else np.empty(0, np.int64)
    mine = mine[np.isin(ledger.begin[mine], at)]
    begin = np.searchsorted(at, ledger.begin[mine])
    held = ledger.end[mine] < 0
    unpaired[begin[held]] = True
    passed_on = ledger.holder[mine] == FLOATING
    done = ~held & ~passed_on
    end = np.searchsorted(at, ledger.end[mine][done])
    ended_by[begin[done]] = end
    by_name = ledger.ended_by[mine][done] != Kind.FREE
    began_at[end[by_name]] = begin[done][by_name]
    return {"ended_by": ended_by, "began_at": began_at, "unpaired": unpaired}
