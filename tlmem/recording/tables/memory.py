"""The tables that every recording has: events, objects, sites, samples, marks, threads.

Covers: one function for each of these tables of ``schema.SCHEMA``, and the totals.
Does not cover: tables of what the runtime recorded (``runtime``, ``tapes``), or what the tables
mean for a program (``analysis``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tlmem.events import (
    BEGIN_LABEL,
    END_LABEL,
    INTERNAL_LABEL_PREFIX,
    METRIC_NAMES,
    NOT_ANONYMOUS,
    Kind,
    Metric,
)
from tlmem.recording.format.checkpoint import HALVING, Checkpoint
from tlmem.recording.format.live_file import Carried
from tlmem.recording.format.pairing import Known, LiveMemory, Pairing, numbers_of, pair
from tlmem.recording.format.symbols import Names
from tlmem.recording.format.timeline import Timeline, event_counts
from tlmem.recording.tables.blame import SiteTable
from tlmem.recording.tables.holder_names import longest_label
from tlmem.recording.tables.schema import frame

ToNs = Callable[[np.ndarray], np.ndarray]
_SAMPLE_GAP_NS = 5_000_000
_MOST_DIGITS = 16
_PIECE = 1 << 18
"""Objects or events that are summed up at a time, so that copies of them take little memory."""
_OWNER, _RESIZED = 7, 8
_OF_PYTHON, _BESIDE_MALLOC = (2, 3), (3, 4)
"""The count of a sampled block's event: Python's allocators gave it; malloc did not."""


@dataclass(frozen=True)
class Totals:
    """Sums over the whole recording, folded events included.

    ``exact`` is False when a checkpoint did not list every live object: frees of the others are
    then counted with their mean size, and everything else is still exact.
    """

    current_bytes: int
    current_count: int
    peak_bytes: int
    peak_count: int
    peak_ns: int
    total_bytes: int
    total_count: int
    freed_bytes: int
    freed_count: int
    acquires: int
    releases: int
    unknown_frees: int
    exact: bool


def events_table(timeline: Timeline, pairing: Pairing, to_ns: ToNs) -> pd.DataFrame:
    """All events, with object numbers where the memory is foreign."""
    numbers = timeline.object.astype(np.int64)
    numbers[pairing.events] = numbers_of(pairing, pairing.row_of_event)
    return frame(
        "events",
        {
            "time_ns": to_ns(timeline.ticks),
            "thread": timeline.thread,
            "kind": timeline.kind,
            "device": timeline.device,
            "object": numbers,
            "address": timeline.object,
            "arg": timeline.arg,
            "site": timeline.site,
            "count": timeline.count,
        },
    )


def objects_table(
    timeline: Timeline,
    pairing: Pairing,
    checkpoint: Checkpoint,
    to_ns: ToNs,
    carried: Carried | None = None,
) -> pd.DataFrame:
    """One row for each allocation: those listed in the checkpoint, then those of the events.

    Args:
        carried: what else is known of those in the checkpoint, where they have events in an earlier
            part of the recording.
    """
    live, begins, ended = checkpoint.live, pairing.begins, pairing.ended_by
    dead = ended >= 0
    position = np.where(dead, ended, 0)

    def born(name: str, listed: np.ndarray) -> np.ndarray:
        values = getattr(timeline, name)[begins]
        return np.concatenate([listed.astype(values.dtype), values]) if len(live) else values

    def died(values: np.ndarray, otherwise: int) -> np.ndarray:
        if not len(values):
            return np.full(len(ended), otherwise, values.dtype)
        return np.where(dead, values[position], values.dtype.type(otherwise))

    resized = numbers_of(pairing, pairing.resized_from)
    folded = np.arange(len(ended)) < len(live)
    if carried is not None:
        resized[np.searchsorted(live["number"], carried.number)] = carried.resized_from
        folded[: len(live)] = live["number"] < carried.first
    first = pairing.known.next_number
    number = pairing.number if len(live) else range(first, first + len(begins))
    return frame(
        "objects",
        {
            "object": number,
            "device": born("device", live["device"]),
            "address": born("object", live["address"]),
            "size_bytes": pairing.size,
            "born_ns": to_ns(born("ticks", live["ticks"])),
            "died_ns": np.where(dead, to_ns(died(timeline.ticks, 0)), -1),
            "born_site": born("site", live["site"]),
            "died_site": died(timeline.site, 0),
            "born_thread": born("thread", live["thread"]),
            "died_thread": died(timeline.thread, 0),
            "resized_from": resized,
            "folded": folded,
        },
    )


def passed_table(checkpoint: Checkpoint, to_ns: ToNs) -> pd.DataFrame:
    """Folded objects that were freed after a long life, in the order of their numbers.

    The columns are those of ``objects``; ``weight`` is how many objects a row stands for.
    """
    rows = checkpoint.passed[np.argsort(checkpoint.passed["number"], kind="stable")]
    return pd.DataFrame(
        {
            "device": rows["device"],
            "size_bytes": rows["bytes"].astype(np.int64),
            "born_ns": to_ns(rows["ticks"]),
            "died_ns": to_ns(rows["died_ticks"]),
            "born_site": rows["site"],
            "died_site": rows["died_site"],
            "weight": np.int64(1) << rows["halvings"].astype(np.int64),
        },
        index=pd.Index(rows["number"].astype(np.int64), name="object"),
    )


def heap_rate(notes: Mapping[str, str]) -> float:
    """One block of the heap was sampled for so many bytes in the mean; 1: every block was."""
    text = notes.get("heap.rate", "")
    return max(float(text), 1.0) if text.isdecimal() and len(text) < _MOST_DIGITS else 1.0


def heap_table(heap: Timeline, notes: Mapping[str, str], to_ns: ToNs) -> pd.DataFrame:
    """One row for each sampled block.

    A block of n bytes is a sample with the chance 1 - exp(-n / rate), so it stands for the
    reciprocal of that: sums of ``weight``, and of ``weight`` times ``size_bytes``, are unbiased.
    Where half of the blocks alive were left out as events were folded, it stands for twice as many.
    """
    pairing = pair(heap, Known.nothing())
    dead = pairing.ended_by >= 0
    ended = np.where(dead, pairing.ended_by, 0)
    died = heap.ticks[ended] if len(heap) else heap.ticks
    count = heap.count[pairing.begins]
    rate = heap_rate(notes)
    weight = np.ones(len(dead)) if rate == 1 else -1 / np.expm1(-np.maximum(pairing.size, 1) / rate)
    weight = weight * np.exp2(count // HALVING)
    return frame(
        "heap",
        {
            "address": heap.object[pairing.begins],
            "size_bytes": pairing.size,
            "is_python": np.isin(count & _OWNER, _OF_PYTHON),
            "of_malloc": ~np.isin(count & _OWNER, _BESIDE_MALLOC),
            "is_resize": (count & _RESIZED) != 0,
            "weight": weight,
            "born_ns": to_ns(heap.ticks[pairing.begins]),
            "died_ns": np.where(dead, to_ns(died), -1),
            "born_site": heap.site[pairing.begins],
            "born_thread": heap.thread[pairing.begins],
            "died_thread": np.where(dead, heap.thread[ended] if len(heap) else 0, 0),
        },
    )


def samples_table(
    timeline: Timeline,
    pairing: Pairing,
    live: LiveMemory,
    checkpoint: Checkpoint,
    to_ns: ToNs,
) -> pd.DataFrame:
    """Samples with one column for each metric; tracked memory is added from the events.

    Samples are of the process' own anonymous memory, so what is tracked of mapped files, shared
    memory and accelerators is left out.
    """
    old = checkpoint.samples
    metric, ticks, value, thread, tracked = (
        [old["metric"]],
        [old["ticks"]],
        [old["value"]],
        [np.zeros(len(old), np.int32)],
        [np.full((len(old), 2), np.nan)],
    )
    at = np.flatnonzero(timeline.kind == Kind.SAMPLE)
    at = at[np.argsort(timeline.thread[at], kind="stable")]
    metric.append(timeline.object[at])
    ticks.append(timeline.ticks[at])
    value.append(timeline.arg[at])
    thread.append(timeline.thread[at])
    all_of_it = np.stack(live.at(pairing, at), axis=1).astype(np.float64)
    tracked.append(all_of_it - _elsewhere(timeline, pairing, checkpoint, at))
    metrics = np.concatenate(metric)
    times = to_ns(np.concatenate(ticks))
    row = _sample_rows(metrics, times, np.concatenate(thread))
    count = int(row[-1]) + 1 if len(row) else 0
    source = np.searchsorted(row, np.arange(count))
    # Asking takes a while; a sample is of the moment at which its last answer was there.
    for last in (Metric.MAPPED, Metric.MALLOC_USED):
        asked = np.flatnonzero(metrics == last)
        source[row[asked]] = asked
    columns: dict[str, np.ndarray] = {"time_ns": times[source]}
    values = np.concatenate(value).astype(np.float64)
    both = np.concatenate(tracked)
    for number, name in METRIC_NAMES.items():
        chosen = metrics == number
        columns[name] = np.full(count, np.nan)
        columns[name][row[chosen]] = values[chosen]
    for name, computed in (("tracked", both[:, 0]), ("tracked_count", both[:, 1])):
        columns[name] = np.where(np.isnan(columns[name]), computed[source], columns[name])
    order = np.argsort(columns["time_ns"], kind="stable")
    return frame("samples", {name: values[order] for name, values in columns.items()})


def _elsewhere(
    timeline: Timeline, pairing: Pairing, checkpoint: Checkpoint, at: np.ndarray
) -> np.ndarray:
    """Bytes and objects outside the process' anonymous memory, after events at these positions."""
    is_new = np.isin(timeline.device[pairing.begins], NOT_ANONYMOUS)
    known = np.isin(checkpoint.live["device"], NOT_ANONYMOUS)
    if not is_new.any() and not known.any():
        return np.zeros((len(at), 2))
    mine = np.concatenate([known, is_new])
    begin = np.concatenate([np.full(len(known), -1), pairing.begins])[mine]
    end, size = pairing.ended_by[mine], pairing.size[mine]
    ended = end >= 0
    moments = np.concatenate([begin, end[ended]])
    order = np.argsort(moments, kind="stable")
    changes = np.stack(
        [
            np.concatenate([size, -size[ended]]),
            np.concatenate([np.ones(len(size)), -np.ones(int(ended.sum()))]),
        ],
        axis=1,
    )[order]
    sums = np.concatenate([np.zeros((1, 2)), np.cumsum(changes, axis=0)])
    return sums[np.searchsorted(moments[order], at, side="right")]


def _sample_rows(metrics: np.ndarray, times: np.ndarray, thread: np.ndarray) -> np.ndarray:
    """The row of each value: a row ends at a repeated metric, a pause, or another thread."""
    breaks = np.ones(len(metrics), bool)
    # Of what a checkpoint has the thread is not known, and its last row may go on.
    breaks[1:] = (thread[1:] != thread[:-1]) & (thread[:-1] != 0)
    breaks[1:] |= np.diff(times) > _SAMPLE_GAP_NS
    breaks |= metrics == Metric.ANON
    seen = 0
    pairs = zip(metrics.clip(max=63).tolist(), breaks.tolist(), strict=True)
    for i, (metric, starts) in enumerate(pairs):
        bit = 1 << metric
        if starts:
            seen = 0
        elif seen & bit:
            seen, breaks[i] = 0, True
        seen |= bit
    return np.cumsum(breaks) - 1


def sites_table(names: Names, table: SiteTable) -> pd.DataFrame:
    """All call sites with their file, function and line."""
    codes = [names.codes.get(code) for code in table.code.tolist()]
    return frame(
        "sites",
        {
            "site": table.site,
            "parent": table.parent,
            "code": table.code,
            "file": np.array([code.file if code else "" for code in codes], object),
            "function": np.array([code.function if code else "" for code in codes], object),
            "line": table.line,
            "first_line": [code.first_line if code else 0 for code in codes],
            "depth": table.depth,
            "blamed": table.blamed,
        },
    )


def site_totals_table(
    timeline: Timeline, pairing: Pairing, checkpoint: Checkpoint, sites: SiteTable, to_ns: ToNs
) -> pd.DataFrame:
    """Exact sums for each call site that allocated or freed something."""
    count = len(sites.site)
    sums = {
        name: np.zeros(count, np.int64)
        for name in (
            *("alloc_count", "alloc_bytes", "freed_count", "freed_bytes"),
            "free_calls",
        )
    }
    folded_rows = sites.rows_of(checkpoint.sites["site"].astype(np.int64))
    for name, values in sums.items():
        np.add.at(values, folded_rows, checkpoint.sites[name].astype(np.int64))
    first = _first_births(timeline, pairing, checkpoint, sites)
    listed = len(checkpoint.live)
    born = np.concatenate([checkpoint.live["site"], timeline.site[pairing.begins]])
    for start in range(0, len(born), _PIECE):
        part, new = slice(start, start + _PIECE), slice(max(listed - start, 0), None)
        rows, size = sites.rows_of(born[part].astype(np.int64)), pairing.size[part]
        dead = pairing.ended_by[part] >= 0
        sums["alloc_count"] += _sum_by(rows[new], None, count)
        sums["alloc_bytes"] += _sum_by(rows[new], size[new], count)
        sums["freed_count"] += _sum_by(rows[dead], None, count)
        sums["freed_bytes"] += _sum_by(rows[dead], size[dead], count)
    for start in range(0, len(pairing.events), _PIECE):
        events = pairing.events[start : start + _PIECE]
        frees = events[timeline.kind[events] == Kind.FREE]
        rows = sites.rows_of(timeline.site[frees].astype(np.int64))
        sums["free_calls"] += _sum_by(rows, None, count)
    used = (sums["alloc_count"] > 0) | (sums["free_calls"] > 0)
    return frame(
        "site_totals",
        {
            "site": sites.site[used],
            **{name: values[used] for name, values in sums.items()},
            "live_count": (sums["alloc_count"] - sums["freed_count"])[used],
            "live_bytes": (sums["alloc_bytes"] - sums["freed_bytes"])[used],
            "first_ns": np.where(sums["alloc_count"] > 0, to_ns(first), -1)[used],
        },
    )


def _first_births(
    timeline: Timeline, pairing: Pairing, checkpoint: Checkpoint, sites: SiteTable
) -> np.ndarray:
    """When the first object of each site was allocated, in ticks; 0 where none was."""
    first = np.zeros(len(sites.site), np.uint64)
    begins = pairing.begins
    for end in range(len(begins), 0, -_PIECE):  # from behind, so that the earliest stays
        events = begins[max(end - _PIECE, 0) : end][::-1]
        rows = sites.rows_of(timeline.site[events].astype(np.int64))
        first[rows] = timeline.ticks[events]
    folded = checkpoint.sites[checkpoint.sites["alloc_count"] > 0]
    first[sites.rows_of(folded["site"].astype(np.int64))] = folded["first_ticks"]
    return first


def _sum_by(rows: np.ndarray, values: np.ndarray | None, count: int) -> np.ndarray:
    """Sums of ``values`` (or counts) for each row; exact for whole numbers up to 2**53."""
    return np.bincount(rows, values, minlength=count).astype(np.int64)


def marks_table(
    timeline: Timeline, checkpoint: Checkpoint, names: Names, to_ns: ToNs
) -> tuple[pd.DataFrame, int | None, int | None, int]:
    """The program's marks, when its code began and ended, and on which thread it ended.

    What was not recorded is None, or the thread 0.
    """
    at = np.flatnonzero(timeline.kind == Kind.MARK)
    old = checkpoint.marks[checkpoint.marks["kind"] == Kind.MARK]
    ticks = np.concatenate([old["ticks"], timeline.ticks[at]])
    label_ids = np.concatenate([old["object"], timeline.object[at]]).tolist()
    longest = longest_label(len(timeline))
    labels = [names.labels.get(label, f"label {label}")[:longest] for label in label_ids]
    times = to_ns(ticks)
    edges = {label: int(time) for label, time in zip(labels, times, strict=True)}
    shown = np.array([not text.startswith(INTERNAL_LABEL_PREFIX) for text in labels], bool)
    arg = np.concatenate([old["arg"], timeline.arg[at]]).astype(np.int64)
    thread = np.concatenate([np.zeros(len(old), np.int32), timeline.thread[at]])
    table = frame(
        "marks",
        {
            "time_ns": times[shown],
            "thread": thread[shown],
            "label": np.array(labels, object)[shown],
            "index": arg[shown],
            "site": np.concatenate([old["site"], timeline.site[at]])[shown],
        },
    )
    threads = dict(zip(labels, thread.tolist(), strict=True))
    return table, edges.get(BEGIN_LABEL), edges.get(END_LABEL), threads.get(END_LABEL, 0)


def threads_table(
    threads: tuple[np.ndarray, ...], checkpoint: Checkpoint, names: Names, to_ns: ToNs
) -> pd.DataFrame:
    """The threads that recorded something or are named in the file.

    Args:
        threads: of every event that is not folded.
    """
    counts: dict[int, int] = dict(checkpoint.consumed)
    for of_some in threads:
        for thread, count in event_counts(of_some):
            counts[thread] = counts.get(thread, 0) + count
    numbers = sorted({*counts, *names.threads})
    known = [names.threads.get(number) for number in numbers]
    first = np.array([thread.first_ticks if thread else 0 for thread in known], np.uint64)
    return frame(
        "threads",
        {
            "thread": numbers,
            "os_id": [thread.os_id if thread else 0 for thread in known],
            "name": np.array([thread.name if thread else "" for thread in known], object),
            "main": [bool(thread and thread.main) for thread in known],
            "first_ns": np.where(first > 0, to_ns(first), 0),
            "events": [counts.get(number, 0) for number in numbers],
        },
    )


def totals_of(
    timeline: Timeline,
    pairing: Pairing,
    live: LiveMemory,
    checkpoint: Checkpoint,
    to_ns: ToNs,
) -> Totals:
    """Sums over everything, the checkpoint's continued by the events."""
    folded = checkpoint.totals
    peak_bytes, peak_count, peak_ticks = (
        folded.peak_bytes,
        folded.peak_count,
        folded.peak_bytes_ticks,
    )
    if len(live.live_bytes):
        highest = int(live.live_bytes.argmax())
        if int(live.live_bytes[highest]) > peak_bytes:
            peak_bytes = int(live.live_bytes[highest])
            peak_ticks = int(timeline.ticks[pairing.events[highest]])
        peak_count = max(peak_count, int(live.live_count.max()))
    new = pairing.size[len(checkpoint.live) :]
    total_bytes = folded.alloc_bytes + int(new.sum())
    total_count = folded.alloc_count + len(new)
    current_bytes = int(live.live_bytes[-1]) if len(live.live_bytes) else live.base_bytes
    current_count = int(live.live_count[-1]) if len(live.live_count) else live.base_count
    return Totals(
        current_bytes=current_bytes,
        current_count=current_count,
        peak_bytes=peak_bytes,
        peak_count=peak_count,
        peak_ns=int(to_ns(np.array([peak_ticks], np.uint64))[0]) if peak_ticks else 0,
        total_bytes=total_bytes,
        total_count=total_count,
        freed_bytes=total_bytes - current_bytes,
        freed_count=total_count - current_count,
        acquires=folded.acquire_count + int((timeline.kind == Kind.ACQUIRE).sum()),
        releases=folded.release_count + int((timeline.kind == Kind.RELEASE).sum()),
        unknown_frees=folded.unknown_frees + len(pairing.unknown) - live.unlisted_frees,
        exact=live.unlisted_frees == 0,
    )
