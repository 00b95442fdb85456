"""A recording on the time axis of Perfetto: memory as counters, scopes and objects as slices.

Covers: a process with the processes it started, each with its tracks. Does not cover: every single
event; of objects a sample is shown. Open the file at https://ui.perfetto.dev.
Source: the messages ``Trace``, ``TracePacket``, ``TrackDescriptor`` and ``TrackEvent`` of
https://perfetto.dev/docs/reference/trace-packet-proto.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.heap_samples import MEMORIES, blocks_of
from tlmem.analysis.lifetimes import alive_at
from tlmem.errors import TlmemError, TooManyFiles
from tlmem.export.protobuf import message, number, text
from tlmem.recording.reader import Recording, read_for_command
from tlmem.report.plots.objects import object_lives
from tlmem.report.plots.plot_data import NothingToDraw, PlotView, label_of
from tlmem.report.plots.sites import REST, sites_over_time
from tlmem.units import format_count

PACKET = 1
TIMESTAMP, SEQUENCE, EVENT, DESCRIPTOR = 8, 10, 11, 60
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
BYTES, COUNT = 3, 2
SEQUENCE_ID = 1
MOMENTS = 2000
MOST_OBJECTS = 1000
MOST_LINES = 12
MOST_SPANS = 200_000
"""Of the scopes, and of the backward passes, the last ones."""
MOST_LANES = 1000
"""Tracks for scopes of one thread that overlap and are not nested."""
ROWS_AT_ONCE = 50_000
NEVER = np.iinfo(np.int64).max
Ints = NDArray[np.int64]
METRICS = (
    ("resident, anonymous", "anon", BYTES),
    ("resident, of files", "file", BYTES),
    ("C allocator, in use", "malloc_used", BYTES),
    ("C allocator, free", "malloc_free", BYTES),
    ("Python's arenas", "python_arena", BYTES),
    ("Python's large blocks", "python_large", BYTES),
    ("drivers of devices", "driver", BYTES),
    ("records on tapes", "tapes", BYTES),
    ("the recorder", "recorder", BYTES),
    ("tracked objects", "tracked_count", COUNT),
)
"""Name of a counter, column of ``samples``, unit."""


@dataclass
class Trace:
    """Packets on their way into a file; times are ns since ``epoch_ns`` of the wall clock."""

    file: IO[bytes]
    epoch_ns: int
    tracks: int = field(default=0)

    def packet(self, *fields: bytes) -> None:
        self.file.write(message(PACKET, *fields, number(SEQUENCE, SEQUENCE_ID)))

    def track(self, name: str, parent: int, *more: bytes) -> int:
        """A new track and its number."""
        self.tracks += 1
        above = [number(5, parent)] if parent else []
        self.packet(message(DESCRIPTOR, number(1, self.tracks), text(2, name), *above, *more))
        return self.tracks

    def event(self, time_ns: int, kind: int, track: int, *more: bytes) -> None:
        """One event on a track, in order of time on that track."""
        self.packet(
            number(TIMESTAMP, time_ns), message(EVENT, number(9, kind), number(11, track), *more)
        )

    def slice(self, begin_ns: int, end_ns: int, track: int, name: str, *more: bytes) -> None:
        """Something that lasted; slices of one track do not overlap."""
        self.event(begin_ns, BEGIN, track, text(23, name), *more)
        self.event(end_ns, END, track)


def note(name: str, value: str | int) -> bytes:
    """Something to read about an event: a debug annotation."""
    filled = text(6, value) if isinstance(value, str) else number(4, value)
    return message(4, text(10, name), filled)


def write(recording: Recording, place: Path) -> str:
    """Writes a trace of a recording and of the processes that it started."""
    family = [recording, *children(recording)]
    left_out = ""
    with open(place, "wb") as file:
        trace = Trace(file, min(member.created_unix_ns for member in family))
        for member in family:
            left_out = write_process(trace, member) or left_out
    return left_out


def children(recording: Recording) -> list[Recording]:
    """The recordings of the processes that one started, those of them that can be read."""
    found = []
    for path in recording.family:
        try:
            found.append(read_for_command(path, recording.start, recording.stop))
        except TooManyFiles:
            raise
        except TlmemError:
            continue
    return found


def write_process(trace: Trace, recording: Recording) -> str:
    """All tracks of one process; what is left out, as a sentence."""
    offset_ns = recording.created_unix_ns - trace.epoch_ns
    pid, script = recording.pid, recording.info.get("script", "").rpartition("/")[2]
    name = script or f"process {pid}"
    process = trace.track(name, 0, message(3, number(1, pid), text(6, name)))
    view = PlotView.of(recording)
    verdict = view.analysis.verdict
    outcome = trace.track("verdict", process)
    trace.slice(
        offset_ns, offset_ns + view.end_ns, outcome, verdict.outcome, note("why", verdict.sentence)
    )
    write_marks(trace, recording, process, offset_ns)
    write_counters(trace, view, process, offset_ns)
    left_out = (
        write_scopes(trace, recording, process, offset_ns),
        write_objects(trace, view, process, offset_ns),
    )
    return " ".join(sentence for sentence in left_out if sentence)


def write_marks(trace: Trace, recording: Recording, process: int, offset_ns: int) -> None:
    """The program's own marks."""
    if len(recording.marks) == 0:
        return
    track = trace.track("marks", process)
    marks = recording.marks
    for time_ns, label, index in rows_of(marks["time_ns"], marks["label"], marks["index"]):
        trace.event(offset_ns + time_ns, INSTANT, track, text(23, f"{label} {index}"))


def rows_of(*columns: pd.Series | np.ndarray) -> Iterator[tuple[Any, ...]]:
    """The rows of columns of one length, of which few at a time are Python's objects."""
    for at in range(0, len(columns[0]), ROWS_AT_ONCE):
        yield from zip(
            *(column[at : at + ROWS_AT_ONCE].tolist() for column in columns), strict=True
        )


def write_counters(trace: Trace, view: PlotView, process: int, offset_ns: int) -> None:
    """Samples as they were taken, and tracked memory, whole and by line, at many moments."""
    samples, objects = view.recording.samples, view.objects
    for name, column, unit in METRICS:
        known = samples[column].notna()
        values = samples[column][known].to_numpy()
        if values.any():
            times = samples["time_ns"][known].to_numpy()
            write_counter(trace, process, name, unit, times + offset_ns, values)
    times = view.moments(MOMENTS)
    write_heap_counters(trace, view, process, times, offset_ns)
    size = objects.size * objects.weight
    tracked = alive_at(times, objects.born, objects.died, size)
    write_counter(trace, process, "tracked memory", BYTES, times + offset_ns, tracked)
    try:
        lines = sites_over_time(view, MOST_LINES, MOMENTS)
    except NothingToDraw:
        return
    for name, held in lines.bytes.items():
        label = REST if name == REST else f"held, allocated at {name}"
        write_counter(trace, process, label, BYTES, lines.edges_ns[:-1] + offset_ns, held)


def write_heap_counters(
    trace: Trace, view: PlotView, process: int, times: np.ndarray, offset_ns: int
) -> None:
    """Sampled heap at many moments, estimated: of each memory all of it, and its largest lines."""
    for memory, name in MEMORIES.items() if len(view.recording.heap) else ():
        blocks = blocks_of(view.recording, view.places, memory, None)
        died = np.where(blocks.died < 0, np.iinfo(np.int64).max, blocks.died)
        size = blocks.size * blocks.weight

        parts = [(f"\N{ALMOST EQUAL TO} sampled {name}", np.arange(len(blocks)))]
        for line, rows in islice(blocks.by_line(), MOST_LINES):
            where = label_of(view.places.frames[line])
            parts.append((f"{parts[0][0]}, allocated at {where}", rows))
        for label, rows in parts if len(blocks) else ():
            held = alive_at(times, blocks.born[rows], died[rows], size[rows])
            write_counter(trace, process, label, BYTES, times + offset_ns, held)


def write_counter(
    trace: Trace, process: int, name: str, unit: int, times_ns: np.ndarray, values: np.ndarray
) -> None:
    """One counter; a value like the one before is not written again."""
    track = trace.track(name, process, message(8, number(3, unit)))
    changed = np.diff(values, prepend=np.nan) != 0
    changed[-1:] = True
    for time_ns, value in rows_of(times_ns[changed], values[changed]):
        trace.event(time_ns, COUNTER, track, number(30, round(value)))


def write_scopes(trace: Trace, recording: Recording, process: int, offset_ns: int) -> str:
    """Scopes, frames of functions and backward passes, by thread, each inside of what is around.

    Scopes of one thread overlap without nesting when its asyncio tasks take turns; those are on
    tracks of their own, of which a thread has ``MOST_LANES``.
    """
    spans = Spans.of(recording)
    threads, left_out = recording.threads, 0
    order = np.lexsort((-spans.end_ns, spans.begin_ns, spans.thread))
    for rows in np.split(order, np.flatnonzero(np.diff(spans.thread[order])) + 1):
        if not len(rows):
            continue
        thread = int(spans.thread[rows[0]])
        known = thread in threads.index
        name = (str(threads["name"].get(thread, "")) if known else "") or f"thread {thread}"
        tracks: list[int] = []
        begun = 0
        for lane, time_ns, row in nested(spans.begin_ns[rows], spans.end_ns[rows], MOST_LANES):
            if lane == len(tracks):
                tracks.append(trace.track(f"scopes of {name}", process))
            if row is None:
                trace.event(offset_ns + time_ns, END, tracks[lane])
            else:
                begun += 1
                words = spans.words(int(rows[row]))
                trace.event(offset_ns + time_ns, BEGIN, tracks[lane], *words)
        left_out += len(rows) - begun
    sentences = [
        f"of {format_count(len(table))} {name} the trace shows the last {format_count(MOST_SPANS)}."
        for name, table in (("scopes", recording.scopes), ("backward passes", recording.passes))
        if len(table) > MOST_SPANS
    ]
    if left_out:
        sentences.append(
            f"the trace leaves {format_count(left_out)} scopes and passes out: each began while "
            f"{format_count(MOST_LANES)} tracks of its thread had others that end before it."
        )
    return " ".join(sentences)


class Spans:
    """Scopes and frames, then backward passes; what is still open ends with the recording.

    Of each of both tables the last ``MOST_SPANS``.
    """

    def __init__(self, scopes: pd.DataFrame, passes: pd.DataFrame, last_ns: int) -> None:
        begin = pd.concat([scopes["enter_ns"], passes["begin_ns"]]).to_numpy(np.int64)
        end = pd.concat([scopes["exit_ns"], passes["end_ns"]]).to_numpy(np.int64)
        self.begin_ns = begin
        self.end_ns = np.maximum(np.where(end < 0, last_ns, end), begin)
        self.thread = pd.concat([scopes["thread"], passes["thread"]]).to_numpy(np.int64)
        self._scopes = [scopes[name].to_numpy() for name in ("label", "is_frame", "registered")]
        self._passes = [passes[name].to_numpy() for name in ("rules", "left_bytes")]
        self._scope_count = len(scopes)

    @classmethod
    def of(cls, recording: Recording) -> Spans:
        """The spans of a recording that its trace shows."""
        last_ns = round(recording.seconds * 1e9)
        return cls(recording.scopes[-MOST_SPANS:], recording.passes[-MOST_SPANS:], last_ns)

    def words(self, row: int) -> tuple[bytes, ...]:
        """The name of a span, and notes about it."""
        if row < self._scope_count:
            label, is_frame, took = (column[row] for column in self._scopes)
            kind = "frame" if is_frame else "scope"
            return text(23, str(label)), note("kind", kind), note("took", int(took))
        rules, left = (int(column[row - self._scope_count]) for column in self._passes)
        return text(23, "backward"), note("rules", rules), note("left bytes", left)


Span = tuple[int, int, str]


def nested(begin_ns: Ints, end_ns: Ints, most: int) -> Iterator[tuple[int, int, int | None]]:
    """Begins and ends in the order of time, each on the first lane on which all stay nested.

    Takes n log n steps and, for each span, a look at the lanes in use.

    Args:
        begin_ns: in order; of spans that begin at once the longest one first.
        most: lanes; a span that fits on none of them is left out.
    Yields:
        The lane, from 0 without gaps; the time; the position of the span that begins, or None where
        the one that began last on this lane ends.
    """
    innermost = np.full(most, NEVER)  # when the innermost open span of each lane ends
    around: list[list[int]] = []  # of each lane, what ``innermost`` was before each open span
    ends: list[tuple[int, int]] = []
    for at, (begin, end) in enumerate(zip(begin_ns.tolist(), end_ns.tolist(), strict=True)):
        while ends and ends[0][0] <= begin:
            time_ns, lane = heapq.heappop(ends)
            innermost[lane] = around[lane].pop()
            yield lane, time_ns, None
        fits = innermost[: len(around) + 1] >= end
        lane = int(fits.argmax())
        if not fits[lane]:
            continue
        if lane == len(around):
            around.append([])
        around[lane].append(int(innermost[lane]))
        innermost[lane] = end
        heapq.heappush(ends, (end, lane))
        yield lane, begin, at
    while ends:
        time_ns, lane = heapq.heappop(ends)
        yield lane, time_ns, None


def write_objects(trace: Trace, view: PlotView, process: int, offset_ns: int) -> str:
    """A sample of the objects as slices, below a track for each line."""
    try:
        lives = object_lives(view, MOST_OBJECTS, MOST_LINES)
    except NothingToDraw:
        return ""
    for block in lives.blocks:
        line = trace.track(f"objects of {block.name}", process)
        rows = slice(*np.searchsorted(lives.row, [block.first, block.first + block.shown]))
        spans: list[Span] = [
            (begin, end, "not freed" if alive else "object")
            for begin, end, alive in zip(
                lives.begin_ns[rows].tolist(), lives.end_ns[rows].tolist(),
                lives.alive[rows].tolist(), strict=True,
            )
        ]  # fmt: skip
        for lane in apart(spans):
            track = trace.track("objects", line)
            for begin_ns, end_ns, name in lane:
                trace.slice(offset_ns + begin_ns, offset_ns + end_ns, track, name)
    if len(lives.row) == lives.count:
        return ""
    return (
        f"the trace shows {format_count(len(lives.row))} of {format_count(lives.count)} objects, "
        "in proportion to how long they lived; its counters count all of them."
    )


def apart(spans: list[Span]) -> list[list[Span]]:
    """Spans on as few lanes as it takes that none overlap, in order of begin."""
    lanes: list[list[Span]] = []
    for span in sorted(spans, key=lambda span: span[:2]):
        free = next((lane for lane in lanes if lane[-1][1] <= span[0]), None)
        if free is None:
            lanes.append([span])
        else:
            free.append(span)
    return lanes
