"""All events of a recording in time order, as one array per field.

Covers: decoding every piece once, gaps, what a checkpoint consumed, resizes, the order of threads.
Does not cover: what the events mean for objects (``pairing``).
See also: docs/format.md, "Time" and "What a reader must expect".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tlmem.events import (
    EVENT_DTYPE,
    FIRST_FOREIGN_DEVICE,
    LAST_FOREIGN_DEVICE,
    LAST_KIND,
    RESIZE_FAILED,
    RESIZE_FREE,
    Device,
    Kind,
)
from tlmem.recording.format import limits
from tlmem.recording.format.blocks import (
    EVENT_COLUMNS,
    EVENTS_BLOCK,
    EVENTS_PER_SLOT,
    SLOT_BYTES,
    SLOT_HEADER_BYTES,
    BadBlock,
    decode_events,
    parse_header,
    store_events,
)
from tlmem.recording.format.segments import EVENTS_SLOT, SEALED, SLOT_PIECE, FileHeader, Source

PLAIN, RESIZE_FIRST, RESIZE_SECOND, CANCELLED = 0, 1, 2, 3
"""Parts of a resize: the free, the realloc that follows it, or either half of one that failed."""

_TIME_TOLERANCE_NS = 1_000_000
_BEGINNINGS = (Kind.ALLOC, Kind.REALLOC)
_WITH_SIZES = (
    *(Kind.ALLOC, Kind.REALLOC, Kind.DEVICE_ALLOC, Kind.DEVICE_FREE, Kind.SAMPLE, Kind.COPY),
)
_EVENTS_IN_A_SUM = 32
"""2**32 events of a size that is ``LARGEST_SUM`` shifted by so much add up to it at most."""
LAST_THREAD = limits.LARGEST_THREAD
_MOST_STRADDLING = 64
"""Blocks that are kept decoded, of 300 kB each; of more threads some are decoded twice."""
_SHORT_RUN = 100
"""Events; runs that are shorter in the mean are not copied one by one."""
_LONGEST_SILENCE_NS = 86_400_000_000_000


@dataclass
class Timeline:
    """Events in time order. ``role`` says what part of a resize an event is."""

    ticks: np.ndarray
    object: np.ndarray
    arg: np.ndarray
    site: np.ndarray
    count: np.ndarray
    kind: np.ndarray
    device: np.ndarray
    thread: np.ndarray
    role: np.ndarray
    problems: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ticks)


def event_counts(thread: np.ndarray) -> list[tuple[int, int]]:
    """Threads and how many events each has, by the thread of each event."""
    if len(thread):
        # Often they are two, and comparing is faster than counting all.
        ends = sorted({int(thread.min()), int(thread.max())})
        counted = [(number, int(np.count_nonzero(thread == number))) for number in ends]
        if sum(count for _, count in counted) == len(thread):
            return counted
    if not len(thread) or int(thread.max()) > 1 << 16:
        numbers, counts = np.unique(thread, return_counts=True)
    else:
        counts = np.bincount(thread)
        numbers = np.flatnonzero(counts)
        counts = counts[numbers]
    return list(zip(numbers.tolist(), counts.tolist(), strict=True))


def without_heap(timeline: Timeline) -> tuple[Timeline, Timeline]:
    """The events of exact sources, and those of sampled blocks of the heap."""
    sampled = timeline.device == Device.HEAP
    if not sampled.any():
        return timeline, rows_of(timeline, np.flatnonzero(sampled))
    return rows_of(timeline, ~sampled), rows_of(timeline, sampled)


def rows_of(timeline: Timeline, which: slice | np.ndarray) -> Timeline:
    """Some of the events."""
    return _timeline({name: values[which] for name, values in _arrays(timeline).items()})


def in_turn(first: Timeline, second: Timeline) -> Timeline:
    """The events of one timeline, then those of another that begins later."""
    both = zip(_arrays(first).items(), _arrays(second).values(), strict=True)
    return _timeline({name: np.concatenate([one, other]) for (name, one), other in both})


def _timeline(arrays: dict[str, Any]) -> Timeline:
    return Timeline(**arrays)


def _arrays(timeline: Timeline) -> dict[str, np.ndarray]:
    return {name: values for name, values in vars(timeline).items() if name != "problems"}


@dataclass
class _Columns:
    """Room for all events, filled piece by piece."""

    arrays: dict[str, np.ndarray]
    thread: np.ndarray
    used: int = 0


class Loader:
    """Decodes the pieces of a recording into a ``Timeline``."""

    def __init__(
        self, source: Source, header: FileHeader, copies: Mapping[int, bytes] | None = None
    ) -> None:
        self.source = source
        self.header = header
        self.problems: list[str] = []
        self.missing_events = 0
        self._site_limit = np.uint32(min(limits.largest_site(source.size()), 2**32 - 1))
        self.bytes_left = float(limits.LARGEST_SUM)
        self.cut_sites = False
        """Whether a site was too large for a file of this length; it became 0."""
        self._straddling: dict[int, dict[str, np.ndarray]] = {}
        """Decoded blocks, by offset, that go on behind the last load: the next one begins there."""
        self.copies = copies or {}
        """Slots that were copied while the file was still being written, by offset."""

    def load(
        self,
        pieces: np.ndarray,
        consumed: dict[int, int],
        first_ticks: int = 0,
        last_ticks: int = 2**64 - 1,
        whole: bool = True,
    ) -> Timeline:
        """Events of these pieces.

        Args:
            pieces: events slots and events blocks, in any order; several may hold the same events.
            consumed: for each thread, how many of its first events are only in a checkpoint.
            first_ticks, last_ticks: events before the first or after the last are left out.
            whole: the pieces are all there should be, so that a gap is worth a problem.
        """
        form = pieces["type"] == EVENTS_BLOCK
        order = np.lexsort(
            (~form, pieces["closed"] == 0, pieces["seq"], pieces["thread_first"], pieces["thread"])
        )
        pieces = pieces[order]
        room = _room(pieces)
        columns = _Columns(
            {name: np.empty(room, dtype) for name, dtype in EVENT_COLUMNS.items()},
            np.empty(room, np.int32),
        )
        missing = self._fill(columns, pieces, consumed, last_ticks) - self.header.lost_events
        if whole and missing > 0:
            self.missing_events = missing
            self.problems.append(
                f"{missing} events are missing from the file; what follows from them is unknown"
            )
        arrays = {name: array[: columns.used] for name, array in columns.arrays.items()}
        arrays["thread"] = columns.thread[: columns.used]
        del columns
        return self._merge(arrays, first_ticks, last_ticks)

    def _fill(
        self, columns: _Columns, pieces: np.ndarray, consumed: dict[int, int], last_ticks: int
    ) -> int:
        """Decodes the pieces thread by thread; returns how many events are missing between them."""
        before, self._straddling = self._straddling, {}
        missing, done, thread, expected = 0, -1, -1, 0
        failed: dict[int, str] = {}
        for piece in pieces:
            if int(piece["thread"]) != thread:
                thread = int(piece["thread"])
                expected = consumed.get(thread, 0)
            seq, first = int(piece["seq"]), int(piece["thread_first"])
            if seq == done:
                continue
            start = columns.used
            try:
                if not 1 <= thread <= LAST_THREAD:
                    raise BadBlock(f"no thread has the number {thread}")
                count = self._decode(columns, piece, before)
                if int(piece["ticks_end"]) > last_ticks:
                    self._keep(columns, start, piece)
            except BadBlock as error:
                failed[seq] = f"{piece['count']} events of thread {thread} were dropped: {error}"
                continue
            failed.pop(seq, None)
            done = seq
            kept = self._skip(columns, start, max(expected - first, 0))
            columns.thread[start : start + kept] = thread
            missing += max(first - expected, 0)
            expected = max(expected, first + count)
        self.problems.extend(failed.values())
        return missing

    @staticmethod
    def _skip(columns: _Columns, start: int, skip: int) -> int:
        """Drops the first events decoded at ``start``; returns how many remain."""
        if skip:
            skip = min(skip, columns.used - start)
            for array in columns.arrays.values():
                array[start : columns.used - skip] = array[start + skip : columns.used].copy()
            columns.used -= skip
        return columns.used - start

    def _keep(self, columns: _Columns, start: int, piece: np.void) -> None:
        """Keeps what was decoded of a block from ``start`` on for the next load."""
        if piece["type"] == EVENTS_BLOCK and len(self._straddling) < _MOST_STRADDLING:
            self._straddling[int(piece["offset"])] = {
                name: array[start : columns.used].copy() for name, array in columns.arrays.items()
            }

    def _decode(
        self, columns: _Columns, piece: np.void, decoded: Mapping[int, dict[str, np.ndarray]]
    ) -> int:
        """Puts the events of one piece at the end of the columns, and returns their number.

        Args:
            decoded: blocks that need not be decoded again, by offset.
        """
        offset = int(piece["offset"])
        if (found := decoded.get(offset)) is not None:
            start, columns.used = columns.used, columns.used + len(found["ticks"])
            for name, array in columns.arrays.items():
                array[start : columns.used] = found[name]
            return columns.used - start
        if piece["type"] == SLOT_PIECE + EVENTS_SLOT:
            return self._decode_slot(columns, offset, int(piece["closed"]), int(piece["count"]))
        data = self.source.read(offset, int(piece["bytes"]))
        block = parse_header(data)
        if (block.seq, block.thread, block.count) != (
            *(piece["seq"], piece["thread"]),
            piece["count"],
        ):
            raise BadBlock("another block is in its place")
        columns.used += decode_events(
            block, data, self.header.time_shift, columns.arrays, columns.used
        )
        return block.count

    def slot(self, offset: int) -> bytes:
        """The slot at an offset, as it was copied while it was being written, if it was."""
        return self.copies.get(offset) or self.source.read(offset, SLOT_BYTES)

    def _decode_slot(self, columns: _Columns, offset: int, closed: int, count: int) -> int:
        data = self.slot(offset)
        room = (len(data) - SLOT_HEADER_BYTES) // EVENT_DTYPE.itemsize
        if room < 0:
            raise BadBlock("the file ends inside its header")
        plain = np.frombuffer(data, EVENT_DTYPE, min(count, room), SLOT_HEADER_BYTES)
        if not closed:
            empty = plain["kind"] == 0
            count = int(empty.argmax()) if empty.any() else len(plain)
            plain = plain[:count]
        sound = self._sound_events(plain)
        if not sound.all():
            self.problems.append(
                f"{int((~sound).sum())} events in the slot at byte {offset} were dropped: "
                "their kind, time or size cannot be"
            )
            plain = plain[sound]
        store_events(plain, self.header.time_shift, columns.arrays, columns.used)
        columns.used += len(plain)
        return count

    def _sound_events(self, plain: np.ndarray) -> np.ndarray:
        """Which raw events can be: kind known, size possible, time in range and in order."""
        header = self.header
        ticks = plain["ticks"]
        tolerance = np.uint64(_TIME_TOLERANCE_NS / header.ns_per_tick)
        silence = 0 if header.state == SEALED else int(_LONGEST_SILENCE_NS / header.ns_per_tick)
        first = np.uint64(max(header.first_ticks - int(tolerance), 0))
        last = np.uint64(min(header.last_ticks + int(tolerance) + silence, 2**64 - 1))
        sound = (plain["kind"] >= 1) & (plain["kind"] <= LAST_KIND)
        sound &= (ticks >= first) & (ticks <= last)
        sound &= ~np.isin(plain["kind"], _BEGINNINGS) | (
            (plain["arg"] <= limits.LARGEST_SIZE) | (plain["arg"] == RESIZE_FAILED)
        )
        later = np.where(sound, ticks, last)
        earliest = np.minimum.accumulate(later[::-1])[::-1]
        return sound & (ticks - np.minimum(earliest, ticks) <= tolerance)

    def _merge(self, arrays: dict[str, np.ndarray], first_ticks: int, last_ticks: int) -> Timeline:
        """The events in time order; ``arrays`` go one by one, as room for all twice is large."""
        if arrays["site"].max(initial=0) > self._site_limit:
            self.cut_sites = True
            arrays["site"][arrays["site"] > self._site_limit] = 0
        self._drop_impossible_sizes(arrays)
        ticks, thread = arrays["ticks"], arrays["thread"]
        wanted = []
        starts = thread_starts(thread)
        for start, end in zip(starts, [*starts[1:], len(ticks)], strict=True):
            stretch = ticks[start:end]
            if (stretch[1:] < stretch[:-1]).any():
                np.maximum.accumulate(stretch, out=stretch)
            first = start + int(np.searchsorted(stretch, np.uint64(first_ticks)))
            after = start + int(np.searchsorted(stretch, np.uint64(last_ticks), side="right"))
            wanted.append((first, max(after, first)))
        role = arrays["role"] = resize_roles(
            arrays["kind"], arrays["arg"], thread, arrays["device"]
        )
        if len(wanted) == 1:
            only = slice(*wanted[0])
            arrays = {name: array[only] for name, array in arrays.items()}
            _part_lone_halves(arrays["role"], arrays["thread"])
            return Timeline(**arrays, problems=self.problems)
        kept = sum(after - first for first, after in wanted)
        if kept < len(ticks) and role.any():
            rows = np.concatenate([np.arange(first, after) for first, after in wanted])
            halves = role[rows]
            _part_lone_halves(halves, thread[rows])
            role[rows] = halves
        # Earlier events than those wanted come before them, and later ones behind.
        earlier = sum(first - start for (first, _), start in zip(wanted, starts, strict=True))
        order = np.argsort(ticks, kind="stable")[earlier : earlier + kept]
        del role, ticks, thread
        runs = _runs(order)
        for name, array in arrays.items():
            arrays[name] = (
                np.concatenate([array[run] for run in runs]) if runs else array.take(order)
            )
        return Timeline(**arrays, problems=self.problems)

    def _drop_impossible_sizes(self, arrays: dict[str, np.ndarray]) -> None:
        """Drops the events whose size no memory has, so that no sum of sizes overflows."""
        suspect = np.uint64(limits.LARGEST_SUM >> _EVENTS_IN_A_SUM)
        if arrays["arg"].max(initial=0) <= suspect:
            return
        large = np.flatnonzero(arrays["arg"] > suspect)
        large = large[np.isin(arrays["kind"][large], _WITH_SIZES)]
        device = arrays["device"][large]
        foreign = (device >= FIRST_FOREIGN_DEVICE) & (device <= LAST_FOREIGN_DEVICE)
        failed = foreign & (arrays["kind"][large] == Kind.REALLOC)
        large = large[~failed | (arrays["arg"][large] != RESIZE_FAILED)]
        if not len(large):
            return
        size = arrays["arg"][large]
        impossible = size > limits.LARGEST_SIZE
        kept = np.where(impossible, 0, size).astype(np.float64)
        # Whatever fits into the sum in the order of the events counts.
        impossible |= np.cumsum(kept) > self.bytes_left
        self.bytes_left -= float(kept[~impossible].sum())
        if not impossible.any():
            return
        self.problems.append(
            f"{int(impossible.sum())} events were dropped: one is of {int(size[impossible].max())} "
            "bytes, more than any memory has"
        )
        sound = np.ones(len(arrays["arg"]), bool)
        sound[large[impossible]] = False
        for name, array in arrays.items():
            arrays[name] = array[sound]


def _runs(order: np.ndarray) -> list[slice]:
    """The stretches of positions that follow each other; none where they are short.

    Threads that take turns, and a sampler beside one, make long ones, and copying these is ten
    times as fast as picking events one by one.
    """
    breaks = np.flatnonzero(np.diff(order) != 1) + 1
    if len(breaks) * _SHORT_RUN > len(order) or not len(order):
        return []
    begins, ends = [0, *breaks.tolist()], [*(breaks - 1).tolist(), -1]
    return [
        slice(begin, end + 1)
        for begin, end in zip(order[begins].tolist(), order[ends].tolist(), strict=True)
    ]


def _room(pieces: np.ndarray) -> int:
    """An upper bound of the events in sorted pieces, copies of the same events counted once."""
    if not len(pieces):
        return 0
    same = np.ones(len(pieces) - 1, bool)
    for name in ("thread", "thread_first", "seq"):
        same &= pieces[name][1:] == pieces[name][:-1]
    starts = np.concatenate([[0], np.flatnonzero(~same) + 1])
    counts = pieces["count"].clip(max=EVENTS_PER_SLOT).astype(np.int64)
    return int(np.maximum.reduceat(counts, starts).sum())


def thread_starts(thread: np.ndarray) -> list[int]:
    """Where each run of one thread begins; 0 also when there are no events."""
    return [0, *(np.flatnonzero(thread[1:] != thread[:-1]) + 1).tolist()]


def resize_roles(
    kind: np.ndarray, arg: np.ndarray, thread: np.ndarray, device: np.ndarray
) -> np.ndarray:
    """Which part of a resize each event is; the events of a thread stand together, in its order."""
    role = np.zeros(len(kind), np.uint8)
    second = np.flatnonzero(kind == Kind.REALLOC)
    second = second[
        (device[second] >= FIRST_FOREIGN_DEVICE) & (device[second] <= LAST_FOREIGN_DEVICE)
    ]
    if not len(second):
        return role
    first = np.maximum(second - 1, 0)
    follows = (
        (second > 0)
        & (kind[first] == Kind.FREE)
        & (arg[first] == RESIZE_FREE)
        & (thread[first] == thread[second])
        & (device[first] == device[second])
    )
    failed = arg[second] == RESIZE_FAILED
    role[second[follows]] = RESIZE_SECOND
    role[first[follows]] = RESIZE_FIRST
    role[second[failed]] = CANCELLED
    role[first[failed & follows]] = CANCELLED
    return role


def _part_lone_halves(role: np.ndarray, thread: np.ndarray) -> None:
    """Makes halves of resizes plain whose other half was left out; the threads stand together."""
    if not role.any():
        return
    first, second = role == RESIZE_FIRST, role == RESIZE_SECOND
    paired = first[:-1] & second[1:] & (thread[1:] == thread[:-1])
    role[first & ~np.append(paired, False)] = PLAIN
    role[second & ~np.insert(paired, 0, False)] = PLAIN
