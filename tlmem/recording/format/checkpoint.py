"""Folding while reading: a recording of any length in bounded memory.

Covers: turning the oldest events of a recording into a checkpoint, the one that the recorder itself
would have written at that moment under a size limit.
Does not cover: checkpoints that are in the file (``folded``).
See also: docs/format.md, "Fold".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tlmem.events import EVENT_DTYPE, RESIZE_FREE, Kind, Metric
from tlmem.recording.format.folded import (
    LIVE_DTYPE,
    SAMPLE_DTYPE,
    SITE_DTYPE,
    Checkpoint,
    FoldTotals,
)
from tlmem.recording.format.pairing import Balance, Pairing, balance, device_changes, pair
from tlmem.recording.format.timeline import Timeline

CHUNK_EVENTS = 3_000_000
MOST_SAMPLES = 400_000
MOST_MARKS = 100_000
MOST_MISUSES = 1000

Load = Callable[[int, int], Timeline]


def horizons(pieces: np.ndarray, keep_events: int, time_shift: int = 0) -> list[int]:
    """Times (ticks) up to which to fold, one after another, so that about ``keep_events`` remain.

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
    cuts = [*range(CHUNK_EVENTS, max(excess, 0), CHUNK_EVENTS), excess] if excess > 0 else []
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
    checkpoint: Checkpoint, first_ticks: int, ends: list[int], load: Load, pieces: np.ndarray
) -> tuple[Checkpoint, int]:
    """The checkpoint continued by all events up to the last of ``ends``, and where the rest begins.

    A moment between the two halves of a resize of any thread is left out: what would have been
    folded there is folded with the next part, or not at all.

    Args:
        checkpoint: sums of what the file has folded already.
        first_ticks: where the events begin.
        ends: see ``horizons``.
        load: events from one tick to another, both included.
        pieces: of all events, also of those that are not folded.
    """
    goes_on = last_moments(pieces)
    for end in ends:
        timeline = load(first_ticks, end)
        if not divides_a_resize(timeline, end, goes_on):
            checkpoint = _continued(checkpoint, timeline, end)
            first_ticks = end + 1
    return checkpoint, first_ticks


def last_moments(pieces: np.ndarray) -> dict[int, int]:
    """When each thread's last piece ends, in ticks."""
    found: dict[int, int] = {}
    for thread, ticks in zip(pieces["thread"].tolist(), pieces["ticks_end"].tolist(), strict=True):
        found[thread] = max(found.get(thread, 0), ticks)
    return found


def divides_a_resize(timeline: Timeline, end: int, goes_on: dict[int, int]) -> bool:
    """Whether a thread's last event up to ``end`` is half of a resize that goes on later."""
    threads, from_behind = np.unique(timeline.thread[::-1], return_index=True)
    last = len(timeline) - 1 - from_behind
    is_half = (timeline.kind[last] == Kind.FREE) & (timeline.arg[last] == RESIZE_FREE)
    return any(goes_on.get(thread, 0) > end for thread in threads[is_half].tolist())


def _continued(before: Checkpoint, timeline: Timeline, horizon: int) -> Checkpoint:
    known = before.known()
    pairing = pair(timeline, known)
    live = balance(pairing, known, before.totals.current_bytes, before.totals.current_count)
    return Checkpoint(
        number=max(before.number, 1),
        totals=_totals(before.totals, timeline, pairing, live, horizon),
        sites=_sites(before, timeline, pairing),
        consumed=_consumed(before.consumed, timeline.thread),
        samples=_samples(before.samples, timeline, pairing, live),
        marks=_thinned(np.concatenate([before.marks, _marks(before, timeline)]), MOST_MARKS),
        live=_live(before.live, timeline, pairing),
    )


def _totals(
    before: FoldTotals, timeline: Timeline, pairing: Pairing, live: Balance, horizon: int
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
        events=before.events + len(timeline),
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
        live_listed=int((pairing.ended_by < 0).sum()),
        acquire_count=before.acquire_count + int((timeline.kind == Kind.ACQUIRE).sum()),
        release_count=before.release_count + int((timeline.kind == Kind.RELEASE).sum()),
        misuse_count=before.misuse_count + int((timeline.kind == Kind.MISUSE).sum()),
        device_bytes=before.device_bytes + int(device_changes(timeline)[1].sum()),
    )


def _sites(before: Checkpoint, timeline: Timeline, pairing: Pairing) -> np.ndarray:
    """Section 1 of a checkpoint, one row for each site used so far."""
    born = np.concatenate([before.live["site"], timeline.site[pairing.begins]]).astype(np.int64)
    frees = pairing.events[timeline.kind[pairing.events] == Kind.FREE]
    new = np.arange(len(born)) >= len(before.live)
    dead = pairing.ended_by >= 0
    old_sites = before.sites["site"].astype(np.int64)
    freeing = timeline.site[frees].astype(np.int64)
    count = 1 + max(
        int(array.max(initial=0)) for array in (born, old_sites, freeing) if array is not None
    )
    rows = np.zeros(count, SITE_DTYPE)
    rows[old_sites] = before.sites
    rows["site"] = np.arange(count)
    for name, which, weights in (
        ("alloc_count", born[new], None),
        ("alloc_bytes", born[new], pairing.size[new]),
        ("freed_count", born[dead], None),
        ("freed_bytes", born[dead], pairing.size[dead]),
        ("free_calls", freeing, None),
    ):
        rows[name] += np.bincount(which, weights, minlength=count).astype(np.uint64)
    first_seen, at = np.unique(born[new], return_index=True)
    unseen = rows["first_ticks"][first_seen] == 0
    first_seen, at = first_seen[unseen], pairing.begins[at[unseen]]
    rows["first_ticks"][first_seen] = timeline.ticks[at]
    rows["device"][first_seen] = timeline.device[at]
    return rows[(rows["alloc_count"] > 0) | (rows["free_calls"] > 0)]


def _consumed(before: dict[int, int], thread: np.ndarray) -> dict[int, int]:
    after = dict(before)
    numbers, counts = np.unique(thread, return_counts=True)
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        after[number] = after.get(number, 0) + count
    return after


def _samples(before: np.ndarray, timeline: Timeline, pairing: Pairing, live: Balance) -> np.ndarray:
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
    samples = np.concatenate([before, np.insert(taken, places, tracked.reshape(-1))])
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


def _live(before: np.ndarray, timeline: Timeline, pairing: Pairing) -> np.ndarray:
    """The objects that are alive, in the order of their numbers."""
    alive = np.flatnonzero(pairing.ended_by < 0)
    listed, new = alive[alive < len(before)], alive[alive >= len(before)]
    at = pairing.begins[new - len(before)]
    fresh = np.zeros(len(new), LIVE_DTYPE)
    fresh["number"], fresh["bytes"] = pairing.number[new], pairing.size[new]
    fresh["ticks"], fresh["address"] = timeline.ticks[at], timeline.object[at]
    fresh["site"], fresh["device"] = timeline.site[at], timeline.device[at]
    fresh["thread"] = timeline.thread[at].clip(max=65535)
    return np.concatenate([before[listed], fresh])
