"""A recording on the time axis of Perfetto: memory as counters, scopes and objects as slices.

Covers: a process with the processes it started, each with its tracks. Does not cover: every single
event; of objects a sample is shown. Open the file at https://ui.perfetto.dev.
Source: the messages ``Trace``, ``TracePacket``, ``TrackDescriptor`` and ``TrackEvent`` of
https://perfetto.dev/docs/reference/trace-packet-proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from tlmem.analysis.lifetimes import alive_at
from tlmem.errors import TlmemError, TooManyFiles
from tlmem.export.protobuf import message, number, text
from tlmem.recording.reader import Recording, read_for_command
from tlmem.report.plots.objects import object_lives
from tlmem.report.plots.plot_data import NothingToDraw, PlotView
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
MOST_SCOPES = 200_000
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
    for mark in recording.marks.to_dict("records"):
        words = text(23, f"{mark['label']} {mark['index']}")
        trace.event(offset_ns + mark["time_ns"], INSTANT, track, words)


def write_counters(trace: Trace, view: PlotView, process: int, offset_ns: int) -> None:
    """Samples as they were taken, and tracked memory, whole and by line, at many moments."""
    samples, objects = view.recording.samples, view.objects
    for name, column, unit in METRICS:
        taken = samples[samples[column].notna()]
        if taken[column].any():
            times, values = taken["time_ns"].to_numpy(), taken[column].to_numpy()
            write_counter(trace, process, name, unit, times + offset_ns, values)
    times = view.moments(MOMENTS)
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


def write_counter(
    trace: Trace, process: int, name: str, unit: int, times_ns: np.ndarray, values: np.ndarray
) -> None:
    """One counter; a value like the one before is not written again."""
    track = trace.track(name, process, message(8, number(3, unit)))
    changed = np.diff(values, prepend=np.nan) != 0
    changed[-1:] = True
    for time_ns, value in zip(times_ns[changed].tolist(), values[changed].tolist(), strict=True):
        trace.event(time_ns, COUNTER, track, number(30, round(value)))


def write_scopes(trace: Trace, recording: Recording, process: int, offset_ns: int) -> str:
    """Scopes, frames of functions and backward passes, by thread, each inside of what is around."""
    last_ns = round(recording.seconds * 1e9)
    spans: list[tuple[int, Span]] = []
    scopes = recording.scopes
    for scope in scopes.iloc[-MOST_SCOPES:].to_dict("records"):
        end_ns = scope["exit_ns"] if scope["exit_ns"] >= 0 else last_ns
        kind = "frame" if scope["is_frame"] else "scope"
        notes = (note("kind", kind), note("took", scope["registered"]))
        spans.append((scope["thread"], (scope["enter_ns"], end_ns, str(scope["label"]), notes)))
    for run in recording.passes.to_dict("records"):
        end_ns = run["end_ns"] if run["end_ns"] >= 0 else last_ns
        notes = (note("rules", run["rules"]), note("left bytes", run["left_bytes"]))
        spans.append((run["thread"], (run["begin_ns"], end_ns, "backward", notes)))
    threads = recording.threads
    for thread in sorted({span[0] for span in spans}):
        known = thread in threads.index
        name = (str(threads["name"].get(thread, "")) if known else "") or f"thread {thread}"
        for lane in nested([span for owner, span in spans if owner == thread]):
            track = trace.track(f"scopes of {name}", process)
            for time_ns, begins, label, about in lane:
                words = (text(23, label), *about) if begins else ()
                trace.event(offset_ns + time_ns, BEGIN if begins else END, track, *words)
    if len(scopes) <= MOST_SCOPES:
        return ""
    return f"of {len(scopes)} scopes the trace shows the last {MOST_SCOPES}."


Span = tuple[int, int, str, tuple[bytes, ...]]
Edge = tuple[int, bool, str, tuple[bytes, ...]]


def nested(spans: list[Span]) -> Iterator[list[Edge]]:
    """Begins and ends in the order of time, on as many lanes as it takes that all are nested.

    Scopes of one thread overlap without nesting when its asyncio tasks take turns.
    """
    lanes: list[tuple[list[Edge], list[int]]] = []
    for begin_ns, end_ns, label, notes in sorted(spans, key=lambda span: (span[0], -span[1])):
        for edges, open_ends in lanes:
            while open_ends and open_ends[-1] <= begin_ns:
                edges.append((open_ends.pop(), False, "", ()))
            if not open_ends or open_ends[-1] >= end_ns:
                break
        else:
            edges, open_ends = [], []
            lanes.append((edges, open_ends))
        edges.append((begin_ns, True, label, notes))
        open_ends.append(end_ns)
    for edges, open_ends in lanes:
        edges.extend((end_ns, False, "", ()) for end_ns in reversed(open_ends))
        yield edges


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
            (begin, end, "not freed" if alive else "object", ())
            for begin, end, alive in zip(
                lives.begin_ns[rows].tolist(), lives.end_ns[rows].tolist(),
                lives.alive[rows].tolist(), strict=True,
            )
        ]  # fmt: skip
        for lane in apart(spans):
            track = trace.track("objects", line)
            for begin_ns, end_ns, name, _ in lane:
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
