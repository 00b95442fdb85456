"""A checkpoint: sums and the live set of events that are gone from the file, or are not kept.

Under a size limit the recorder folds its oldest events into a checkpoint in the file. A reader that
is given ``detail_events`` folds while it reads, so that a recording of any length needs bounded
memory. Both continue the same sums, which are exact; samples and marks are thinned when they become
too many, and there the reader keeps more than the recorder, see ``MOST_SAMPLES``.

Covers: the sections of a checkpoint, the one in force in a file, folding while reading.
Does not cover: how the events that remain continue it (``pairing``).
See also: docs/format.md, "Fold".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from tlmem.events import EVENT_DTYPE, RESIZE_FREE, Device, Kind, Metric
from tlmem.recording.format import limits
from tlmem.recording.format.blocks import (
    EVENT_COLUMNS,
    BadBlock,
    BlockHeader,
    entries,
    parse_header,
)
from tlmem.recording.format.pairing import (
    ENDS,
    Known,
    LiveMemory,
    Pairing,
    device_changes,
    live_memory,
    pair,
)
from tlmem.recording.format.segments import Source
from tlmem.recording.format.timeline import (
    LAST_THREAD,
    Timeline,
    event_counts,
    in_turn,
    rows_of,
    without_heap,
)

TOTALS, SITES, THREADS, SAMPLES, MARKS, LIVE, HEAP, PASSED = range(8)
SITE_DTYPE = np.dtype(
    [
        ("alloc_count", "<u8"),
        ("alloc_bytes", "<u8"),
        ("freed_count", "<u8"),
        ("freed_bytes", "<u8"),
        ("free_calls", "<u8"),
        ("first_ticks", "<u8"),
        ("site", "<u4"),
        ("device", "<u4"),
    ]
)
THREAD_DTYPE = np.dtype([("consumed", "<u8"), ("thread", "<u8")])
SAMPLE_DTYPE = np.dtype([("ticks", "<u8"), ("metric", "<u8"), ("value", "<u8")])
LIVE_DTYPE = np.dtype(
    [
        ("number", "<u8"),
        ("ticks", "<u8"),
        ("address", "<u8"),
        ("bytes", "<u8"),
        ("site", "<u4"),
        ("thread", "<u2"),
        ("device", "u1"),
        ("unused", "u1"),
    ]
)
HEAP_DTYPE = np.dtype(
    [
        ("ticks", "<u8"),
        ("object", "<u8"),
        ("arg", "<u8"),
        ("site", "<u4"),
        ("thread", "<u2"),
        ("count", "u1"),
        ("kind", "u1"),
    ]
)
PASSED_DTYPE = np.dtype(
    [
        ("number", "<u8"),
        ("ticks", "<u8"),
        ("died_ticks", "<u8"),
        ("bytes", "<u8"),
        ("site", "<u4"),
        ("died_site", "<u4"),
        ("device", "u1"),
        ("halvings", "u1"),
        ("unused", "V6"),
    ]
)
SECTION_DTYPES = {
    TOTALS: np.dtype("<u8"),
    SITES: SITE_DTYPE,
    THREADS: THREAD_DTYPE,
    SAMPLES: SAMPLE_DTYPE,
    MARKS: EVENT_DTYPE,
    LIVE: LIVE_DTYPE,
    HEAP: HEAP_DTYPE,
    PASSED: PASSED_DTYPE,
}

CHUNK_EVENTS = 250_000
"""Events that are folded at a time while reading, at most half as many as are kept in detail.

So many, and their order, lie in a core's own cache.
"""
LEAST_CHUNK_EVENTS = 100_000
_MOST_TOGETHER = 4
"""Parts that are folded at once where many objects are alive."""
MOST_SAMPLES = 400_000
MOST_MARKS = 100_000
"""Samples and marks that a fold while reading keeps before it drops every second one.

The recorder's limits (65,536 and 16,384 in ``native/log/fold_state.c``) are lower on purpose: its
arrays of 2 MB stand in the memory of the program that is measured, these in that of the reader.
"""
LONG_LIFE = 0.04
"""Of the events that are folded at a time: what lived for longer has passed, see ``passed``."""
MOST_PASSED = 400_000
"""So many a fold while reading keeps, before it keeps every second one."""
MOST_HEAP = 400_000
"""Events of sampled blocks that a fold while reading keeps, before it drops what is not alive."""
MOST_RECORDED = 65_536
"""Sampled blocks, and objects that passed, that a recorder lists at most."""
HALVING = 1 << 4
"""The count of an event of the heap has so often what it was halved by: each stands for more."""
_MOST_HALVINGS = 15
_LARGEST_STRIDE = 1 << 24
MOST_MISUSES = 1000
"""The first misuses are kept with the marks, as by the recorder; further ones are only counted."""

_SIGNED = ("device_bytes",)
"""What a device handed out before the recording may be freed in it."""

Load = Callable[[int, int], Timeline]


@dataclass(frozen=True)
class FoldTotals:
    """Sums over all folded events, in the order of the file."""

    events: int = 0
    horizon_ticks: int = 0
    alloc_count: int = 0
    alloc_bytes: int = 0
    free_count: int = 0
    free_bytes: int = 0
    unknown_frees: int = 0
    current_bytes: int = 0
    current_count: int = 0
    peak_bytes: int = 0
    peak_bytes_ticks: int = 0
    peak_count: int = 0
    next_object: int = 0
    live_stride: int = 1
    live_listed: int = 0
    release_count: int = 0
    acquire_count: int = 0
    misuse_count: int = 0
    device_bytes: int = 0
    heap_from_ticks: int = 0


@dataclass(frozen=True)
class Checkpoint:
    """The sections of one checkpoint. Without one: zeros and empty arrays, number 0.

    ``heap`` has the folded events of sampled blocks of the heap: all since ``heap_from_ticks``, and
    of those before the allocations of blocks that were alive then. ``passed`` has the objects that
    were freed before the horizon after a long life; none of them are known until ``lost_ticks``,
    where a recorder of an older version folded.
    """

    number: int
    totals: FoldTotals
    sites: np.ndarray
    consumed: dict[int, int]
    samples: np.ndarray
    marks: np.ndarray
    live: np.ndarray
    heap: np.ndarray
    passed: np.ndarray
    lost_ticks: int = 0

    @staticmethod
    def none() -> Checkpoint:
        """Nothing was folded."""
        empty = {section: np.empty(0, dtype) for section, dtype in SECTION_DTYPES.items()}
        return _build(0, empty)

    def known(self) -> Known:
        """The listed live objects, for pairing the events that remain."""
        live = self.live
        return Known(
            live["number"].astype(np.int64),
            live["device"],
            live["address"],
            live["bytes"],
            self.totals.next_object,
        )

    def heap_events(self) -> Timeline:
        """The folded events of sampled blocks."""
        rows = self.heap
        given = {name: rows[name] for name in HEAP_DTYPE.names or ()}
        given["device"] = np.full(len(rows), Device.HEAP)
        columns: dict[str, Any] = {
            name: given[name].astype(dtype) for name, dtype in EVENT_COLUMNS.items()
        }
        no_resize = np.zeros(len(rows), np.uint8)
        return Timeline(**columns, thread=given["thread"].astype(np.int32), role=no_resize)


def read_checkpoint(
    source: Source, pieces: np.ndarray, in_force: int, problems: list[str]
) -> Checkpoint:
    """The checkpoint in force, or the newest whole one when it is not whole.

    Args:
        pieces: the fold blocks of the file.
        in_force: ``fold_number`` of the file header; 0 when nothing was folded.
        problems: gets a sentence when another checkpoint had to do.
    """
    if in_force == 0:
        return Checkpoint.none()
    numbers = sorted(set(pieces["seq"].tolist()) - {in_force}, reverse=True)
    for number in [in_force, *numbers][: limits.MOST_CHECKPOINTS_TRIED]:
        try:
            found = _read_sections(source, pieces[pieces["seq"] == number], number)
        except BadBlock as error:
            problems.append(f"checkpoint {number} cannot be used: {error}")
            continue
        return found
    problems.append("no checkpoint is whole; what was folded is unknown")
    return Checkpoint.none()


def _read_sections(source: Source, pieces: np.ndarray, number: int) -> Checkpoint:
    parts: dict[tuple[int, int], np.ndarray] = {}
    blocks = 0
    room = most = limits.most_folded(source.size())
    for piece in pieces:
        offset, size = int(piece["offset"]), int(piece["bytes"])
        data = source.read(offset, size)
        header = parse_header(data)
        if header.seq != number or header.thread not in SECTION_DTYPES:
            raise BadBlock(f"the block at byte {offset} is another one")
        room -= header.columns[0][1]
        if room < 0:
            raise BadBlock(
                f"it inflates to more than the {most} bytes that one in a file of "
                f"{source.size()} bytes may have"
            )
        parts[header.thread, header.part] = _section(header, data)
        blocks = header.thread_first
    if not parts or len(parts) != blocks:
        raise BadBlock(f"{len(parts)} of its {blocks} blocks are there")
    sections = {
        section: np.concatenate(
            [np.empty(0, dtype), *(parts[key] for key in sorted(parts) if key[0] == section)]
        )
        for section, dtype in SECTION_DTYPES.items()
    }
    _check_sections(sections, limits.largest_site(source.size()))
    return _build(number, sections)


def _check_sections(sections: dict[int, np.ndarray], largest_site: int) -> None:
    """That the numbers can be: what counts memory or is counted on has bounds.

    Raises:
        BadBlock: one of them cannot.
    """
    largest = limits.LARGEST_SUM
    totals, live, sites = sections[TOTALS], sections[LIVE], sections[SITES]
    names = [one.name for one in fields(FoldTotals)]
    for name, value in zip(names, totals.tolist(), strict=False):
        if value > largest and name not in _SIGNED and not name.endswith("_ticks"):
            raise BadBlock(f"its sum {name} is {value}")
    by_name = dict(zip(names, totals.tolist(), strict=False))
    stride = by_name.get("live_stride") or 1
    if not 1 <= stride <= _LARGEST_STRIDE or stride & (stride - 1):
        raise BadBlock(f"it lists one in {stride} live objects")
    number, next_number = live["number"], by_name.get("next_object", 0)
    if len(live) and ((number[1:] <= number[:-1]).any() or int(number[-1]) >= next_number):
        raise BadBlock("its live objects have numbers that no object has")
    held = live["bytes"].sum(dtype=np.float64)
    if len(live) and (int(live["bytes"].max()) > limits.LARGEST_SIZE or held > largest):
        raise BadBlock("its live objects are larger than any memory")
    for name in ("alloc_count", "alloc_bytes", "freed_count", "freed_bytes", "free_calls"):
        if sites[name].sum(dtype=np.float64) > largest:
            raise BadBlock(f"its sum {name} of lines is larger than any memory")
    if max(int(sites["site"].max(initial=0)), int(live["site"].max(initial=0))) > largest_site:
        raise BadBlock("it names a line that no name can be there for")
    if len(np.unique(sites["site"])) < len(sites):
        raise BadBlock("it has two sums for one line")
    heap = sections[HEAP]
    if len(heap) and (
        len(heap) > MOST_RECORDED
        or int(heap["arg"].max()) > limits.LARGEST_SIZE
        or int(heap["site"].max()) > largest_site
        or not (heap["kind"] == Kind.ALLOC).all()
        or (heap["ticks"][1:] < heap["ticks"][:-1]).any()
    ):
        raise BadBlock("its sampled blocks cannot be")
    passed = sections[PASSED]
    if len(passed) and (
        len(passed) > MOST_RECORDED
        or (passed["died_ticks"] < passed["ticks"]).any()
        or int(passed["number"].max()) >= next_number
        or int(passed["bytes"].max()) > limits.LARGEST_SIZE
        or max(int(passed["site"].max()), int(passed["died_site"].max())) > largest_site
        or 1 << int(passed["halvings"].max()) > _LARGEST_STRIDE
    ):
        raise BadBlock("objects that it says passed cannot be")
    threads = sections[THREADS]
    if len(threads) > limits.MOST_FOLDED_THREADS or int(threads["consumed"].max(initial=0)) > (
        by_name.get("events", 0)
    ):
        raise BadBlock("it says that more was folded than there was")
    if len(threads) and int(threads["thread"].max()) > LAST_THREAD:
        raise BadBlock("it names a thread that there cannot be")
    if int(sections[SAMPLES]["value"].max(initial=0)) > limits.LARGEST_SIZE:
        raise BadBlock("it has a sample that is larger than any memory")


def _section(header: BlockHeader, data: bytes) -> np.ndarray:
    rows = entries(header, data, SECTION_DTYPES[header.thread])
    if header.thread == LIVE:
        rows = rows.copy()
        zigzag = rows["address"]
        rows["address"] = (zigzag >> np.uint64(1)) ^ (np.uint64(0) - (zigzag & np.uint64(1)))
        for name in ("number", "ticks", "address"):
            rows[name] = np.cumsum(rows[name], dtype=np.uint64)
    return rows


def _build(number: int, sections: dict[int, np.ndarray]) -> Checkpoint:
    totals = [int(value) for value in sections[TOTALS][: len(fields(FoldTotals))].view(np.int64)]
    consumed = {int(row["thread"]): int(row["consumed"]) for row in sections[THREADS]}
    sums, lost_ticks = FoldTotals(*totals), 0
    if number and len(totals) < len(fields(FoldTotals)):  # an older version wrote it
        sums, lost_ticks = replace(sums, heap_from_ticks=sums.horizon_ticks), sums.horizon_ticks
    return Checkpoint(
        number,
        sums,
        sections[SITES],
        consumed,
        sections[SAMPLES],
        sections[MARKS],
        sections[LIVE],
        sections[HEAP],
        sections[PASSED],
        lost_ticks,
    )


def horizons(
    pieces: np.ndarray, keep_events: int, time_shift: int = 0, most: int | None = None
) -> list[int]:
    """Times (ticks) up to which to fold, one after another, so that about ``keep_events`` remain.

    About ``most`` events lie between two of them.

    Each lies in the middle of a piece, never between the two halves of a resize that end one piece
    and begin the next: so not in a piece whose second half is one moment, by a clock that counts in
    units of ``1 << time_shift`` ticks. It may lie within a resize of another thread: see ``fold``.
    Empty when there is nothing to fold.
    """
    pieces = pieces[(pieces["count"] > 0) & (pieces["closed"] == 1)]
    middle = pieces["ticks_begin"] + (pieces["ticks_end"] - pieces["ticks_begin"]) // np.uint64(2)
    order = np.argsort(middle, kind="stable")
    middle, seen = middle[order], np.cumsum(pieces["count"][order].astype(np.int64))
    excess = int(seen[-1]) - keep_events if len(seen) else 0
    units = (middle >> np.uint64(time_shift), pieces["ticks_end"][order] >> np.uint64(time_shift))
    divided = units[0] < units[1]
    middle, seen = middle[divided], seen[divided]
    chunk = most or min(CHUNK_EVENTS, max(keep_events // 2, LEAST_CHUNK_EVENTS))
    cuts = [*range(chunk, max(excess, 0), chunk), excess] if excess > 0 else []
    if not len(seen):
        return []
    found = np.unique(middle[np.searchsorted(seen, cuts).clip(max=len(seen) - 1)])
    return [int(ticks) for ticks in found if ticks > 0]


def missing_events(pieces: np.ndarray, consumed: dict[int, int]) -> int:
    """How many events are missing between the pieces of each thread, by what the pieces say."""
    missing, expected = 0, dict(consumed)
    order = np.lexsort((pieces["thread_first"], pieces["thread"]))
    columns = (pieces[name][order].tolist() for name in ("thread", "thread_first", "count"))
    for thread, first, count in zip(*columns, strict=True):
        reached = expected.get(thread, 0)
        missing += max(first - reached, 0)
        expected[thread] = max(reached, first + count)
    return missing


def fold(
    checkpoint: Checkpoint,
    first_ticks: int,
    ends: list[int],
    load: Load,
    pieces: np.ndarray,
    most_live: int = 2**63,
) -> tuple[Checkpoint, int, bool]:
    """The checkpoint continued by all events up to the last of ``ends``, and where the rest begins.

    The third value says whether events that are still to be written can change none of it.

    A moment between the two halves of a resize of any thread is left out: what would have been
    folded there is folded with the next part, or not at all.

    Args:
        checkpoint: sums of what the file has folded already.
        first_ticks: where the events begin.
        ends: see ``horizons``.
        load: events from one tick to another, both included.
        pieces: of all events, also of those that are not folded.
        most_live: so many live objects are listed at most, as ``with_fewer_live`` chooses them.
    """
    goes_on, settled, at = last_moments(pieces), True, 0
    while at < len(ends):
        # Live objects are gone through with each part, so it should have as many events as they.
        further = min(len(checkpoint.live) // CHUNK_EVENTS, _MOST_TOGETHER - 1)
        at = min(at + further, len(ends) - 1)
        end, at = ends[at], at + 1
        timeline = load(first_ticks, end)
        settled = settled and not _ends_in_a_resize(timeline, end, goes_on)
        if not divides_a_resize(timeline, end, goes_on):
            checkpoint = with_fewer_live(_continued(checkpoint, timeline, end), most_live)
            first_ticks = end + 1
    return checkpoint, first_ticks, settled


def with_fewer_live(checkpoint: Checkpoint, most: int) -> Checkpoint:
    """The checkpoint with at most ``most`` live objects listed, chosen as a recorder does.

    Of more, one in ``live_stride`` is listed, by a hash of its number. Sums stay exact.
    """
    live, stride = checkpoint.live, max(checkpoint.totals.live_stride, 1)
    while len(live) > most and stride < _LARGEST_STRIDE:
        stride *= 2
        live = live[_is_listed(live["number"], stride)]
    if len(live) == len(checkpoint.live):
        return checkpoint
    live = live[-most:].copy()
    totals = replace(checkpoint.totals, live_stride=stride, live_listed=len(live))
    return replace(checkpoint, totals=totals, live=live)


def _is_listed(numbers: np.ndarray, stride: int | np.ndarray) -> np.ndarray:
    """``tlmi_fold_is_listed`` of native/log/fold.h."""
    hashed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)
    listed: np.ndarray = (hashed & (np.asarray(stride, np.uint64) - np.uint64(1))) == 0
    return listed


def last_moments(pieces: np.ndarray) -> dict[int, int]:
    """When each thread's last piece ends, in ticks."""
    found: dict[int, int] = {}
    for thread, ticks in zip(pieces["thread"].tolist(), pieces["ticks_end"].tolist(), strict=True):
        found[thread] = max(found.get(thread, 0), ticks)
    return found


def divides_a_resize(timeline: Timeline, end: int, goes_on: dict[int, int]) -> bool:
    """Whether a thread's last event up to ``end`` is half of a resize that goes on later."""
    return any(goes_on.get(thread, 0) > end for thread in _within_a_resize(timeline))


def _ends_in_a_resize(timeline: Timeline, end: int, goes_on: dict[int, int]) -> bool:
    """Whether a thread's last event of all, so far, is half of a resize."""
    return any(goes_on.get(thread, 0) <= end for thread in _within_a_resize(timeline))


def _within_a_resize(timeline: Timeline) -> list[int]:
    """Threads whose last event is half of a resize."""
    halves = timeline.arg == RESIZE_FREE
    if not halves.any():
        return []
    halves &= timeline.kind == Kind.FREE
    if not halves.any():
        return []
    threads, from_behind = np.unique(timeline.thread[::-1], return_index=True)
    found: list[int] = threads[halves[len(timeline) - 1 - from_behind]].tolist()
    return found


def _continued(before: Checkpoint, timeline: Timeline, horizon: int) -> Checkpoint:
    """A checkpoint continued by all events up to ``horizon``, with few samples and marks."""
    timeline, heap = without_heap(timeline)
    pairing = pair(timeline, before.known())
    after = continued(before, timeline, heap, pairing, horizon)
    after = replace(
        after,
        samples=_thinned_samples(after.samples),
        marks=_thinned(after.marks, MOST_MARKS),
        passed=_passed(before, timeline, pairing),
    )
    return _with_heap(after, heap)


def _passed(before: Checkpoint, timeline: Timeline, pairing: Pairing) -> np.ndarray:
    """The objects that passed: those known before, and those of these events."""
    known, ended = len(before.live), pairing.ended_by
    old = np.flatnonzero(ended[:known] >= 0)
    least = max(1, int(LONG_LIFE * len(timeline)))
    new = np.flatnonzero(ended[known:] - pairing.begins >= least)
    number = pairing.known.next_number + new
    stride = max(before.totals.live_stride, 1)
    if stride > 1:
        is_listed = _is_listed(number, stride)
        new, number = new[is_listed], number[is_listed]
    rows = np.zeros(len(old) + len(new), PASSED_DTYPE)
    for name in ("number", "ticks", "bytes", "site", "device"):
        rows[name][: len(old)] = before.live[name][old]
    fresh, at = rows[len(old) :], pairing.begins[new]
    fresh["number"], fresh["bytes"] = number, pairing.size[known + new]
    fresh["ticks"], fresh["site"] = timeline.ticks[at], timeline.site[at]
    fresh["device"] = timeline.device[at]
    end = np.concatenate([ended[old], ended[known + new]])
    if len(rows):
        rows["died_ticks"], rows["died_site"] = timeline.ticks[end], timeline.site[end]
    rows["halvings"] = stride.bit_length() - 1
    passed = np.concatenate([before.passed, rows])
    while len(passed) > MOST_PASSED:
        passed["halvings"] += passed["halvings"] == passed["halvings"].min()
        strides = np.uint64(1) << passed["halvings"].astype(np.uint64)
        passed = passed[_is_listed(passed["number"], strides)]
    return passed


def _with_heap(checkpoint: Checkpoint, heap: Timeline) -> Checkpoint:
    """The checkpoint with the events of sampled blocks that were folded last; few, if many."""
    if not len(heap):
        return checkpoint
    totals, events = checkpoint.totals, in_turn(checkpoint.heap_events(), heap)
    if len(events) > MOST_HEAP:
        pairing = pair(events, Known.nothing())
        events = _with_fewer_blocks(rows_of(events, pairing.begins[pairing.ended_by < 0]))
        totals = replace(totals, heap_from_ticks=totals.horizon_ticks)
    rows = np.empty(len(events), HEAP_DTYPE)
    for name in HEAP_DTYPE.names or ():
        rows[name] = getattr(events, name)
    return replace(checkpoint, totals=totals, heap=rows)


def _with_fewer_blocks(alive: Timeline) -> Timeline:
    """At most half of ``MOST_HEAP`` of some sampled blocks; each that is left stands for more.

    Those that stand for the fewest are halved first. So old blocks and new ones stand for as many,
    and an estimate's error is that of their number.
    """
    while len(alive) > MOST_HEAP // 2:
        halvings = alive.count // HALVING
        least = int(halvings.min())
        if least == _MOST_HALVINGS:
            break
        hashed = (alive.object ^ alive.ticks) * np.uint64(0x9E3779B97F4A7C15)
        left = (halvings > least) | (hashed >> np.uint64(40 + least) & np.uint64(1) == 0)
        alive = rows_of(alive, left)
        alive.count += (HALVING * (halvings[left] == least)).astype(alive.count.dtype)
    return alive


def continued(
    before: Checkpoint, timeline: Timeline, heap: Timeline, pairing: Pairing, horizon: int
) -> Checkpoint:
    """A checkpoint continued by events up to ``horizon``, with all of their samples and marks.

    Args:
        timeline, heap: the events of exact sources, and those of sampled blocks of the heap, which
            are in no sums: they are only counted.
        pairing: of the timeline, with the objects that ``before`` lists known.
    """
    live = live_memory(
        pairing, pairing.known, before.totals.current_bytes, before.totals.current_count
    )
    return Checkpoint(
        number=max(before.number, 1),
        totals=_totals(before.totals, timeline, len(heap), pairing, live, horizon),
        sites=_sites(before, timeline, pairing),
        consumed=_consumed(_consumed(before.consumed, timeline.thread), heap.thread),
        samples=_samples(before.samples, timeline, pairing, live),
        marks=np.concatenate([before.marks, _marks(before, timeline)]),
        live=_live(before, timeline, pairing),
        heap=before.heap,
        passed=before.passed,
        lost_ticks=before.lost_ticks,
    )


def _totals(
    before: FoldTotals,
    timeline: Timeline,
    of_heap: int,
    pairing: Pairing,
    live: LiveMemory,
    horizon: int,
) -> FoldTotals:
    born = pairing.size[len(pairing.size) - len(pairing.begins) :]
    current_bytes, current_count = live.base_bytes, live.base_count
    peak = {"peak_bytes": before.peak_bytes, "peak_bytes_ticks": before.peak_bytes_ticks}
    if len(live.live_bytes):
        current_bytes, current_count = int(live.live_bytes[-1]), int(live.live_count[-1])
        highest = int(live.live_bytes.argmax())
        if int(live.live_bytes[highest]) > before.peak_bytes:
            peak = {
                "peak_bytes": int(live.live_bytes[highest]),
                "peak_bytes_ticks": int(timeline.ticks[pairing.events[highest]]),
            }
    alloc_bytes = before.alloc_bytes + int(born.sum())
    alloc_count = before.alloc_count + len(born)
    return replace(
        before,
        **peak,
        events=before.events + len(timeline) + of_heap,
        horizon_ticks=horizon,
        alloc_count=alloc_count,
        alloc_bytes=alloc_bytes,
        free_count=alloc_count - current_count,
        free_bytes=alloc_bytes - current_bytes,
        unknown_frees=before.unknown_frees + len(pairing.unknown) - live.unlisted_frees,
        current_bytes=current_bytes,
        current_count=current_count,
        peak_count=max(before.peak_count, int(live.live_count.max(initial=0))),
        next_object=before.next_object + len(pairing.begins),
        live_listed=int(np.count_nonzero(pairing.ended_by < 0)),
        acquire_count=before.acquire_count + int(np.count_nonzero(timeline.kind == Kind.ACQUIRE)),
        release_count=before.release_count + int(np.count_nonzero(timeline.kind == Kind.RELEASE)),
        misuse_count=before.misuse_count + int(np.count_nonzero(timeline.kind == Kind.MISUSE)),
        device_bytes=before.device_bytes + int(device_changes(timeline)[1].sum()),
    )


def _positions_of_frees(timeline: Timeline, pairing: Pairing) -> np.ndarray:
    """Of the frees of a pairing, those of failed resizes included."""
    if not timeline.role.any():
        return pairing.events.take(np.flatnonzero(pairing.action == ENDS))
    at = np.flatnonzero(timeline.kind.take(pairing.events) == Kind.FREE)
    return pairing.events.take(at)


def _sites(before: Checkpoint, timeline: Timeline, pairing: Pairing) -> np.ndarray:
    """Section 1 of a checkpoint, one row for each site used so far."""
    known = len(before.live)
    born = timeline.site.take(pairing.begins).astype(np.int64)
    gone = np.flatnonzero(pairing.ended_by[:known] >= 0)
    lost = before.live["site"][gone].astype(np.int64)
    living = np.flatnonzero(pairing.ended_by[known:] < 0)
    freeing = timeline.site.take(_positions_of_frees(timeline, pairing)).astype(np.int64)
    old_sites = before.sites["site"].astype(np.int64)
    count = 1 + max(int(each.max(initial=0)) for each in (lost, born, old_sites, freeing))

    def sums(which: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(which, weights, minlength=count).astype(np.int64)

    rows = np.zeros(count, SITE_DTYPE)
    rows[old_sites] = before.sites
    rows["site"] = np.arange(count)
    known_before = rows["alloc_count"] > 0
    # Of new objects few live on, and of older ones few died: these are gone through.
    old_size, size = pairing.size[:known], pairing.size[known:]
    new = {"count": sums(born), "bytes": sums(born, size)}
    died = {
        "count": new["count"] - sums(born[living]) + sums(lost),
        "bytes": new["bytes"] - sums(born[living], size[living]) + sums(lost, old_size[gone]),
    }
    for what in ("count", "bytes"):
        rows[f"alloc_{what}"] += new[what].astype(np.uint64)
        rows[f"freed_{what}"] += np.maximum(died[what], 0).astype(np.uint64)
    rows["free_calls"] += sums(freeing).astype(np.uint64)
    unseen = ~known_before & (new["count"] > 0)
    if unseen.any():
        first = np.flatnonzero(unseen[born])
        first_seen, at = np.unique(born[first], return_index=True)
        at = pairing.begins[first[at]]
        rows["first_ticks"][first_seen] = timeline.ticks[at]
        rows["device"][first_seen] = timeline.device[at]
    return rows[(rows["alloc_count"] > 0) | (rows["free_calls"] > 0)]


def _consumed(before: dict[int, int], thread: np.ndarray) -> dict[int, int]:
    after = dict(before)
    for number, count in event_counts(thread):
        after[number] = after.get(number, 0) + count
    return after


def _samples(
    before: np.ndarray, timeline: Timeline, pairing: Pairing, live: LiveMemory
) -> np.ndarray:
    at = np.flatnonzero(timeline.kind == Kind.SAMPLE)
    taken = np.empty(len(at), SAMPLE_DTYPE)
    taken["ticks"], taken["metric"] = timeline.ticks[at], timeline.object[at]
    taken["value"] = timeline.arg[at]
    with_tracked = at[timeline.object[at] == Metric.ANON]
    tracked = np.empty((len(with_tracked), 2), SAMPLE_DTYPE)
    tracked["ticks"] = timeline.ticks[with_tracked][:, None]
    tracked["metric"] = [Metric.TRACKED, Metric.TRACKED_COUNT]
    tracked["value"] = np.stack(live.at(pairing, with_tracked), axis=1)
    # Those of one moment stand together, the one that begins a row of the table first.
    places = np.searchsorted(at, with_tracked, side="right").repeat(2)
    return np.concatenate([before, np.insert(taken, places, tracked.reshape(-1))])


def _thinned_samples(samples: np.ndarray) -> np.ndarray:
    for metric in np.unique(samples["metric"]) if len(samples) > MOST_SAMPLES else ():
        chosen = np.flatnonzero(samples["metric"] == metric)
        samples["metric"][chosen[::2]] = 0
    return samples[samples["metric"] > 0]


def _marks(before: Checkpoint, timeline: Timeline) -> np.ndarray:
    """Marks, and the first misuses of the recording."""
    misuses = np.flatnonzero(timeline.kind == Kind.MISUSE)
    kept = misuses[: max(MOST_MISUSES - before.totals.misuse_count, 0)]
    at = np.union1d(np.flatnonzero(timeline.kind == Kind.MARK), kept)
    marks = np.zeros(len(at), EVENT_DTYPE)
    for name in ("ticks", "object", "arg", "site", "count", "kind", "device"):
        marks[name] = getattr(timeline, name)[at]
    return marks


def _thinned(rows: np.ndarray, most: int) -> np.ndarray:
    return rows[::2] if len(rows) > most else rows


def _live(checkpoint: Checkpoint, timeline: Timeline, pairing: Pairing) -> np.ndarray:
    """The objects that are alive, in the order of their numbers; of new ones as many as of old."""
    before = checkpoint.live
    alive = np.flatnonzero(pairing.ended_by < 0)
    old = int(np.searchsorted(alive, len(before)))
    listed, new = alive[:old], alive[old:]
    number = pairing.known.next_number + (new - len(before))
    if checkpoint.totals.live_stride > 1:
        is_listed = _is_listed(number, checkpoint.totals.live_stride)
        new, number = new[is_listed], number[is_listed]
    live = np.empty(old + len(new), LIVE_DTYPE)
    before.take(listed, out=live[:old], mode="clip")  # whole rows, faster than an index
    at, fresh = pairing.begins[new - len(before)], live[old:]
    fresh["number"], fresh["bytes"] = number, pairing.size[new]
    fresh["ticks"], fresh["address"] = timeline.ticks[at], timeline.object[at]
    fresh["site"], fresh["device"] = timeline.site[at], timeline.device[at]
    fresh["thread"], fresh["unused"] = timeline.thread[at].clip(max=65535), 0
    return live
