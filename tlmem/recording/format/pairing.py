"""Lifetimes: which free ends which allocation.

Covers: object numbers, pairing by address (foreign memory) or handle (objects of the runtime) in
time order, resizes, unknown frees, live memory after each event.
Does not cover: who held an object meanwhile (``tables.ledger``).
See also: docs/format.md, "Event", for the rules. A handle is never used again, so that for the
runtime's objects the same rules hold and nothing is ever replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tlmem.events import FIRST_FOREIGN_DEVICE, Kind
from tlmem.recording.format.grouping import MULTIPLIER, group_order
from tlmem.recording.format.timeline import CANCELLED, RESIZE_FIRST, RESIZE_SECOND, Timeline

ENDS, BEGINS, TOUCHES = 0, 1, 2
_FEW_KNOWN = 1_000
"""Fewer are brought together with the events in less time than it takes to choose among them."""
_ROOM_PER_ADDRESS = 4
"""Then up to a quarter of the known addresses that are not met are taken for such that are."""
_PIECE = 1 << 18
"""Positions that are gone through at a time, so that copies of them take little memory."""


def index_dtype(count: int) -> type[np.signedinteger]:
    """The narrowest integers that can number so many things, and be -1."""
    return np.int32 if count < 2**31 else np.int64


@dataclass(frozen=True)
class Known:
    """Objects that are alive before the first event: the live list of a checkpoint."""

    number: np.ndarray
    device: np.ndarray
    address: np.ndarray
    size: np.ndarray
    next_number: int = 0

    @staticmethod
    def nothing() -> Known:
        """No objects, numbers begin at 0."""
        return Known(
            np.empty(0, np.int64),
            np.empty(0, np.uint8),
            np.empty(0, np.uint64),
            np.empty(0, np.uint64),
        )


@dataclass(frozen=True)
class Pairing:
    """Who ends whom. Positions are those of the timeline; rows are known objects, then new ones.

    Positions and rows are 32 bits wide where that is enough: there is one for each event.

    Attributes:
        events: positions of the events that begin, end or touch an object, ascending.
        begins: positions of the events that begin an object, one for each new object.
        known: objects that were alive before.
        size: bytes of each row.
        ended_by: position of the event that ends each row; -1 while it is alive.
        replaced: rows that ended because their address was allocated again, without a free.
        resized_from: row that each row replaces by a resize; -1 for none.
        row_of_event: row each of ``events`` speaks of; -1 for memory older than the recording.
        action: whether each of ``events`` ends, begins or touches an object.
        unknown: positions of frees of memory that was not alive.
    """

    events: np.ndarray
    begins: np.ndarray
    known: Known
    size: np.ndarray
    ended_by: np.ndarray
    replaced: np.ndarray
    resized_from: np.ndarray
    row_of_event: np.ndarray
    action: np.ndarray
    unknown: np.ndarray

    @property
    def number(self) -> np.ndarray:
        """Object number of each row: known objects, then new ones in time order."""
        first = self.known.next_number
        new = np.arange(first, first + len(self.begins))
        return np.concatenate([self.known.number, new]) if len(self.known.number) else new

    def deltas(self) -> tuple[np.ndarray, np.ndarray]:
        """Change of live bytes (int64) and of live objects (int8) by each of ``events``."""
        sign = np.array([-1, 1, 0], np.int8).take(self.action)
        sign[self.row_of_event < 0] = 0
        delta = np.zeros(len(sign), np.int64)
        if len(self.size):
            self.size.take(self.row_of_event, out=delta, mode="wrap")  # -1 counts nothing
        delta *= sign
        replacing = np.searchsorted(self.events, self.ended_by[self.replaced])
        np.subtract.at(delta, replacing, self.size[self.replaced])
        np.subtract.at(sign, replacing, 1)
        return delta, sign


def pair(timeline: Timeline, known: Known) -> Pairing:
    """Pairs the allocations and frees of a timeline, with ``known`` alive at its beginning."""
    kind = timeline.kind
    selected = (kind >= Kind.ALLOC) & (kind <= Kind.REALLOC)
    selected &= timeline.device >= FIRST_FOREIGN_DEVICE
    before = len(known.number)
    wide = index_dtype(len(timeline) + before)
    positions = np.flatnonzero(selected)
    events = positions.astype(wide)
    action = (kind.take(positions) != Kind.FREE).view(np.uint8)
    if timeline.role.any():
        action[timeline.role[events] == CANCELLED] = TOUCHES
    beginning = np.flatnonzero(action == BEGINS)
    begins = events.take(beginning)

    met = _perhaps_met(known.address, timeline.object)
    address = _behind(known.address[met], timeline.object, positions)
    device = _behind(known.device[met], timeline.device, positions)
    del positions, selected
    several = len(device) and device.min() != device.max()
    order, same = group_order(address, device) if several else group_order(address)
    del address, device
    rows = np.empty(len(met) + len(events), wide)
    rows[: len(met)], rows[len(met) :] = met, -1
    rows[len(met) + beginning] = np.arange(before, before + len(begins), dtype=wide)
    actions = np.empty(len(rows), np.uint8)
    actions[: len(met)], actions[len(met) :] = BEGINS, action
    del beginning
    ender = _link(order, same, rows, actions, before + len(begins))
    del order, same

    row_of_event = rows[len(met) :]
    size = _behind(known.size, timeline.arg, begins).view(np.int64)
    ended = np.flatnonzero(ender >= 0)
    enders = ender.take(ended)
    replaced = ended[np.flatnonzero(actions.take(enders) == BEGINS)]
    enders -= len(met)
    ended_by = ender
    ended_by[ended] = events.take(enders)
    no_row = row_of_event < 0
    return Pairing(
        events=events,
        begins=begins,
        known=known,
        size=size,
        ended_by=ended_by,
        replaced=replaced,
        resized_from=_resized_from(timeline, events, row_of_event, len(size)),
        row_of_event=row_of_event,
        action=action,
        unknown=events[(action == ENDS) & no_row],
    )


def _perhaps_met(known: np.ndarray, addresses: np.ndarray) -> np.ndarray:
    """Positions of the known addresses that may be among others: all that are, and few more.

    Of many objects that live long few are met in a part of a recording, and the rest need not be
    brought together with its events.
    """
    if len(known) < _FEW_KNOWN:
        return np.arange(len(known))
    bits = (_ROOM_PER_ADDRESS * len(addresses)).bit_length()
    there = np.zeros(1 << bits, bool)
    there[_short_hash(addresses, bits)] = True
    return np.flatnonzero(there.take(_short_hash(known, bits)))


def _short_hash(addresses: np.ndarray, bits: int) -> np.ndarray:
    return (addresses * MULTIPLIER >> np.uint64(64 - bits)).view(np.int64)


def _behind(known: np.ndarray, values: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The values at some positions, behind those of known objects."""
    both = np.empty(len(known) + len(positions), values.dtype)
    both[: len(known)] = known
    values.take(positions, out=both[len(known) :], mode="clip")
    return both


def numbers_of(pairing: Pairing, rows: np.ndarray) -> np.ndarray:
    """Object numbers of rows of a pairing; -1 for -1."""
    return np.where(rows >= 0, pairing.number[rows], -1) if len(pairing.size) else rows


def _link(
    order: np.ndarray, same: np.ndarray, rows: np.ndarray, actions: np.ndarray, count: int
) -> np.ndarray:
    """For each row, the index that ends it, or -1; ``rows`` of frees and touches are filled in.

    Args:
        order, same: indexes grouped by memory, see ``group_order``.
        count: of rows.
    """
    ender = np.full(count, -1, rows.dtype)
    if not len(order):
        return ender
    if actions.max() == TOUCHES:
        _link_touches(order, same, rows, actions)
        linked = actions.take(order) != TOUCHES
        group = np.concatenate([[0], np.cumsum(~same)])[linked]
        order, same = order[linked], group[1:] == group[:-1]
    for start in range(0, len(order), _PIECE):
        piece = order[start : start + _PIECE + 1]
        in_order = actions.take(piece)
        followed = np.flatnonzero((in_order[:-1] == BEGINS) & same[start : start + _PIECE])
        ended = rows.take(piece.take(followed))
        followed += 1
        after, ends = piece.take(followed), np.flatnonzero(in_order.take(followed) == ENDS)
        ender[ended] = after
        rows[after.take(ends)] = ended.take(ends)
    return ender


def _link_touches(
    order: np.ndarray, same: np.ndarray, rows: np.ndarray, actions: np.ndarray
) -> None:
    """Fills in the row that each failed resize speaks of."""
    group = np.concatenate([[0], np.cumsum(~same)])
    begins = actions[order] == BEGINS
    last = np.maximum.accumulate(np.where(begins, np.arange(len(order)), -1))
    touches = np.flatnonzero((actions[order] == TOUCHES) & (last >= 0))
    touches = touches[group[last[touches]] == group[touches]]
    rows[order[touches]] = rows[order[last[touches]]]


def _resized_from(
    timeline: Timeline, events: np.ndarray, row_of_event: np.ndarray, rows: int
) -> np.ndarray:
    """For each row, the row whose resize made it; -1 for none."""
    result = np.full(rows, -1, row_of_event.dtype)
    if not timeline.role.any():
        return result
    role = timeline.role[events]
    halves = np.flatnonzero((role == RESIZE_FIRST) | (role == RESIZE_SECOND))
    halves = halves[np.argsort(timeline.thread[events[halves]], kind="stable")]
    first, second = halves[:-1], halves[1:]
    whole = (role[first] == RESIZE_FIRST) & (role[second] == RESIZE_SECOND)
    whole &= timeline.thread[events[first]] == timeline.thread[events[second]]
    result[row_of_event[second[whole]]] = row_of_event[first[whole]]
    return result


def device_changes(timeline: Timeline) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the events in which a device's driver hands out memory or gets it back.

    Returns:
        The positions, and by how many bytes each changes what is handed out.
    """
    at = np.flatnonzero((timeline.kind == Kind.DEVICE_ALLOC) | (timeline.kind == Kind.DEVICE_FREE))
    size = timeline.arg[at].view(np.int64)
    return at, np.where(timeline.kind[at] == Kind.DEVICE_ALLOC, size, -size)


@dataclass(frozen=True)
class LiveMemory:
    """Live memory after each event of a ``Pairing``, and the sums that go with it.

    Attributes:
        base_bytes, base_count: live before the first event.
        live_bytes, live_count: live after each of ``Pairing.events``.
        unlisted_frees: frees that must have ended objects a checkpoint counts but does not list.
    """

    base_bytes: int
    base_count: int
    live_bytes: np.ndarray
    live_count: np.ndarray
    unlisted_frees: int

    def at(self, pairing: Pairing, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Live bytes and count just after the events at these positions of the timeline."""
        alike = positions.astype(pairing.events.dtype)  # else all events are copied as wide numbers
        last = np.searchsorted(pairing.events, alike, side="right") - 1
        if not len(pairing.events):
            return np.full(len(last), self.base_bytes), np.full(len(last), self.base_count)
        return (
            np.where(last >= 0, self.live_bytes[last], self.base_bytes),
            np.where(last >= 0, self.live_count[last], self.base_count),
        )


def live_memory(pairing: Pairing, known: Known, base_bytes: int, base_count: int) -> LiveMemory:
    """Live memory over time, beginning with what a checkpoint says was alive.

    A checkpoint of a very large live set lists only a part of it. Frees that match nothing are then
    taken as frees of the rest, each of its mean size, until the rest is used up.
    """
    delta_bytes, delta_count = pairing.deltas()
    rest_count = max(base_count - len(known.number), 0)
    unlisted = pairing.unknown[:rest_count]
    if len(unlisted):
        rest_bytes = max(base_bytes - int(known.size.sum()), 0)
        at = np.searchsorted(pairing.events, unlisted)
        shares = np.arange(1, len(unlisted) + 1) * rest_bytes // rest_count
        delta_bytes[at] -= np.diff(shares, prepend=0)
        delta_count[at] -= 1
    live_bytes = np.cumsum(delta_bytes, out=delta_bytes)
    live_bytes += base_bytes
    most = base_count + len(delta_count)
    live_count = np.cumsum(delta_count, dtype=index_dtype(most))
    live_count += base_count
    return LiveMemory(base_bytes, base_count, live_bytes, live_count, len(unlisted))
