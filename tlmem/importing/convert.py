"""A snapshot as a recording: entries of the trace become events, the state at the end tables.

Covers: times, events of blocks and segments, marks and phases, notes. Does not cover: what was
there before the trace (``allocator``), the bytes of the file (``writer``).
See also: docs/format.md, "PyTorch", which says what stands where.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tlmem.events import (
    BEGIN_LABEL,
    EVENT_DTYPE,
    OLDER,
    OUT_OF_MEMORY,
    SNAPSHOT_LABEL,
    WORKSPACE,
    Device,
    Kind,
)
from tlmem.importing import writer
from tlmem.importing.allocator import (
    Lives,
    Rules,
    accelerators,
    lives_of,
    peak_of,
    segments_before,
    uses_of,
    with_sizes,
)
from tlmem.importing.snapshot import (
    MAP,
    OOM,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SNAPSHOT,
    Snapshot,
    Trace,
    unread,
)
from tlmem.recording.format.allocator_state import (
    ACCELERATOR_BITS,
    BLOCKS,
    EXPANDABLE,
    PHASE_DTYPE,
    PHASES,
    PINNED_HOST,
    REQUESTED,
    REQUESTED_DTYPE,
    SEGMENTS,
    UNKNOWN_TIME,
    USE_DTYPE,
    USES,
    pack,
)
from tlmem.recording.format.symbols import NO_STACK
from tlmem.units import format_bytes, format_count

IMPORTER = "torch-snapshot"
"""Value of the note ``importer``."""
NO_PROCESS = 1 << 30
"""Added to a checksum it stands for the process, which a snapshot does not name: no process has
such a number, and two snapshots have different ones."""
FIRST_ENTRY_NS = 1_000
"""What is older than the trace is allocated at 0, the first entry follows."""
ENTRY_NS = 1_000_000
"""Length of an entry where the trace has no times."""
MARKS_THREAD = 1
ROWS_PER_RECORD = 2_000
BACKWARDS_US = 1_000
"""Entries are ordered; clocks of several cores may differ by less than this."""
MOST_PROBLEMS = 50
MOST_MARKS = 200_000
CUBLAS_BYTES = 8_519_680
"""What PyTorch keeps for cuBLAS in each stream, unless told otherwise, but on GPUs of the class
H100, where it is 32 MiB: a size that others may have."""
MOST_WORKSPACES = 16
"""Of one device; more blocks of that size are parts of a model."""
MOST_REFUSED = 100
"""Requests whose bytes are kept for export."""
_NUMBERED = re.compile(r"(.*\S)\s*#(\d{1,15})", re.DOTALL)

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Imported:
    """A recording as bytes, and what is said of it: counts, and contradictions in sentences.

    ``remarks`` list input that was skipped or corrected without effect on memory figures.
    """

    data: bytes
    entries: int
    segments: int
    base: int
    problems: tuple[str, ...]
    remarks: tuple[str, ...] = ()


@dataclass
class _Labels:
    """Texts of marks, numbered from 1."""

    numbers: dict[str, int] = field(default_factory=dict)

    def of(self, name: str) -> int:
        """The number of a text."""
        return self.numbers.setdefault(name, len(self.numbers) + 1)


def recording_of(snapshot: Snapshot, source: str) -> Imported:
    """The recording that a snapshot makes.

    Args:
        snapshot: its columns.
        source: the name of its file.
    """
    problems, remarks = list(snapshot.problems), list(snapshot.remarks)
    first_us, has_times = _first_time(snapshot)
    labels = _Labels()
    notes = {"importer": IMPORTER, "command": f"tlmem import {source}", "script": source}
    if not has_times and any(len(trace) for trace in snapshot.traces):
        notes["snapshot.clock"] = "entries"
    threads: dict[int, np.ndarray] = {}
    names: dict[int, str] = {MARKS_THREAD: "annotations"}
    requested: list[np.ndarray] = []
    uses: list[np.ndarray] = []
    last_ns = FIRST_ENTRY_NS
    base = 0
    for number, accelerator in enumerate(accelerators(snapshot), MARKS_THREAD + 1):
        name = snapshot.names.get(accelerator) or _name(accelerator)
        notes[f"accelerator.{accelerator}"] = name.rsplit(":", 1)[0].replace(" ", "-")
        trace = _trace_of(snapshot, accelerator)
        times = _times(trace, first_us, has_times, remarks, name)
        made = _Accelerator(snapshot, trace, times, accelerator, name, labels)
        names[number] = name
        threads[number], asked, used = made.events()
        requested.append(asked.astype(np.uint64).view(REQUESTED_DTYPE))
        uses.append(used)
        notes[f"snapshot.{accelerator}"] = made.figures()
        if refused := made.refused():
            notes[f"oom.{accelerator}"] = refused
        problems += made.problems
        base += made.base
        last_ns = max(last_ns, int(times.max(initial=0)))
    marks, phases, late_ns = _annotations(snapshot, first_us if has_times else None, labels)
    last_ns = max(last_ns, late_ns)
    threads = {MARKS_THREAD: marks, **threads}
    notes |= {f"allocator.{key}": value for key, value in snapshot.settings.items()}
    folders = sorted(snapshot.sites.folders)
    if folders and not any(os.pathsep in folder for folder in folders):
        notes["python.sites"] = os.pathsep.join(folders)
    if snapshot.unknown_actions:
        left_out = unread("trace entries of an unknown action", snapshot.unknown_actions)
        if problems or not len(snapshot.segments):
            problems.append(left_out)
        else:
            remarks.append(f"{left_out}; the others lead to the blocks in the segments")
    del remarks[MOST_PROBLEMS:]
    if len(problems) > MOST_PROBLEMS:
        problems[MOST_PROBLEMS:] = [f"{len(problems) - MOST_PROBLEMS} more contradictions"]
    notes |= {f"problem.{number}": each for number, each in enumerate(problems)}
    notes |= {f"snapshot.remark.{number}": each for number, each in enumerate(remarks)}
    rows = {
        SEGMENTS: snapshot.segments,
        BLOCKS: snapshot.blocks,
        PHASES: phases,
        REQUESTED: _by_number(threads, requested, REQUESTED_DTYPE),
    }
    if any(
        _is_worth_keeping(used, rows)
        for used, rows in zip(uses, list(threads.values())[1:], strict=True)
    ):
        rows[USES] = _by_number(threads, uses, USE_DTYPE)
    data = writer.file_of(
        _records(snapshot, notes, names, labels, rows),
        threads,
        max(0, first_us * 1000 - FIRST_ENTRY_NS) if has_times else 0,
        last_ns + FIRST_ENTRY_NS,
        NO_PROCESS | sum(zlib.crc32(rows.tobytes()) for rows in threads.values()) % NO_PROCESS,
    )
    entries = sum(len(trace) for trace in snapshot.traces)
    segments = len(snapshot.segments)
    return Imported(data, entries, segments, base, tuple(problems), tuple(remarks))


def _name(accelerator: int) -> str:
    return "pinned host memory" if accelerator == PINNED_HOST else f"cuda:{accelerator}"


def _trace_of(snapshot: Snapshot, accelerator: int) -> Trace:
    for trace in snapshot.traces:
        if trace.accelerator == accelerator:
            return trace
    none = np.empty(0, np.int64)
    return Trace(accelerator, none.astype(np.uint8), none, none, none, none, none, none)


# ---- times ----


def _first_time(snapshot: Snapshot) -> tuple[int, bool]:
    """Time of the first entry in microseconds, and whether entries have times at all."""
    firsts = [int(known[0]) for t in snapshot.traces if len(known := _ordered(t.time_us))]
    if not firsts and not any(len(trace) for trace in snapshot.traces):
        firsts = [annotation.time_us for annotation in snapshot.annotations]
    return (min(firsts), True) if firsts else (0, False)


def _ordered(time_us: Ints) -> Ints:
    """Known times as they would be if they never went back, with as few changes as can be."""
    known = time_us[time_us >= 0]
    if not len(known):
        return known
    forward = np.maximum.accumulate(known)
    backward = np.minimum.accumulate(known[::-1])[::-1]
    return min(forward, backward, key=lambda times: int((times != known).sum()))


def _times(trace: Trace, first_us: int, has_times: bool, remarks: list[str], name: str) -> Ints:
    """Nanoseconds since the start of the recording of each entry, no two of them at one moment.

    What lives until the next entry would otherwise seem to be there beside what that one makes.
    """
    if not has_times:
        return FIRST_ENTRY_NS + ENTRY_NS * np.arange(len(trace))
    known = trace.time_us >= 0
    if not known.any():
        return FIRST_ENTRY_NS + np.arange(len(trace))
    ordered = _ordered(trace.time_us)
    moved = int((np.abs(ordered - trace.time_us[known]) > BACKWARDS_US).sum())
    if moved:
        remarks.append(f"the times of {format_count(moved)} entries on {name} are not in order")
    if not known.all():
        remarks.append(
            f"{format_count(int((~known).sum()))} entries on {name} have no time; each has that of "
            "the entry before it"
        )
    place = np.maximum(np.cumsum(known) - 1, 0)
    entries = np.arange(len(trace))
    times = np.maximum(ordered[place] - first_us, 0) * 1000 + FIRST_ENTRY_NS
    return np.maximum.accumulate(times - entries) + entries


# ---- events ----


class _Accelerator:
    """The events of one accelerator."""

    def __init__(
        self,
        snapshot: Snapshot,
        trace: Trace,
        times: Ints,
        accelerator: int,
        name: str,
        labels: _Labels,
    ) -> None:
        segments = np.flatnonzero(snapshot.segments["accelerator"] == accelerator)
        blocks = snapshot.blocks[np.isin(snapshot.blocks["segment"], segments)]
        self.trace, self.times, self.labels, self.name = trace, times, labels, name
        self.key = np.uint64(accelerator << ACCELERATOR_BITS)
        mine = snapshot.segments[segments]
        lives = lives_of(trace, blocks, name)
        self.before, wrong = segments_before(trace, mine, name)
        expandable = bool(len(mine)) and bool((mine["flags"] & EXPANDABLE).all())
        rules = Rules(snapshot.divisions, expandable, snapshot.largest_split)
        lives = with_sizes(lives, trace, mine, self.before, rules)
        sites = lives.site if accelerator == PINNED_HOST else _places(lives, snapshot)
        self.lives = replace(lives, site=sites)
        self.uses = uses_of(self.lives, trace, mine)
        self.problems = [*self.lives.problems, *wrong]
        self.base = int((self.lives.begin < 0).sum())

    def events(self) -> tuple[np.ndarray, Ints, np.ndarray]:
        """All events in order, and of each allocation what was asked for and how it was used."""
        lives, trace = self.lives, self.trace
        old = np.flatnonzero(lives.begin < 0)
        new = np.flatnonzero(lives.begin >= 0)
        ended = np.flatnonzero(lives.end >= 0)
        before = np.array(self.before, np.int64).reshape(-1, 2)
        at, size = before[:, 0], before[:, 1]
        none = np.zeros(len(at), np.int64)
        reserved = np.flatnonzero((trace.action >= MAP) & (trace.action <= SEGMENT_FREE))
        came = np.isin(trace.action[reserved], (MAP, SEGMENT_ALLOC))
        kinds = np.where(came, Kind.DEVICE_ALLOC, Kind.DEVICE_FREE)
        marks = self._marks()
        parts = [
            # entry, kind, object, arg, site
            (none - 1, none + Kind.DEVICE_ALLOC, at, size, none),
            (lives.begin[old], Kind.ALLOC, lives.address[old], lives.size[old], lives.site[old]),
            (lives.begin[new], Kind.ALLOC, lives.address[new], lives.size[new], lives.site[new]),
            (lives.end[ended], Kind.FREE, lives.address[ended], 0, trace.site[lives.end[ended]]),
            (reserved, kinds, trace.address[reserved], trace.size[reserved], trace.site[reserved]),
            marks,
        ]
        rows = np.zeros(sum(len(part[0]) for part in parts), EVENT_DTYPE)
        entry = np.empty(len(rows), np.int64)
        filled = 0
        for where, kind, objects, arg, site in parts:
            to = slice(filled, filled + len(where))
            entry[to] = where
            rows["kind"][to] = kind
            rows["object"][to] = objects
            rows["arg"][to] = arg
            rows["site"][to] = site
            filled += len(where)
        memory = rows["kind"] != Kind.MARK
        rows["object"][memory] |= self.key
        rows["device"][memory] = Device.TORCH_ACCELERATOR
        rows["count"][rows["kind"] == Kind.ALLOC] = 1
        asked = np.zeros(len(rows), np.int64)
        uses = np.zeros(len(rows), USE_DTYPE)
        allocations = slice(len(at), len(at) + len(old) + len(new))
        asked[allocations] = lives.requested[np.concatenate([old, new])]
        uses[allocations] = self.uses[np.concatenate([old, new])]
        times = np.concatenate([[0], self.times])
        rows["ticks"] = writer.FIRST_TICKS + times[entry + 1]
        order = np.argsort(entry, kind="stable")
        rows, asked, uses = rows[order], asked[order], uses[order]
        is_alloc = rows["kind"] == Kind.ALLOC
        return rows, asked[is_alloc], uses[is_alloc]

    def _marks(self) -> tuple[Ints, int, Ints, Ints, Ints]:
        """Marks where memory ran out, where snapshots were taken, where the user's text changed."""
        trace = self.trace
        found: list[tuple[int, int, int]] = []
        for number, entry in enumerate(np.flatnonzero(trace.action == OOM).tolist()):
            room = int(trace.room[entry])
            free = f", {format_bytes(room)} free on the device" if room >= 0 else ""
            asked = format_bytes(int(trace.size[entry]))
            text = f"{OUT_OF_MEMORY}{self.name}: {asked} requested"
            found.append((entry, self.labels.of(text + free), number))
        for number, entry in enumerate(np.flatnonzero(trace.action == SNAPSHOT).tolist()):
            found.append((entry, self.labels.of(SNAPSHOT_LABEL), number))
        for number, (entry, text) in enumerate(trace.metadata):
            name, index = numbered(text)
            found.append((entry, self.labels.of(name), number if index is None else index))
        rows = np.array(sorted(found)[:MOST_MARKS], np.int64).reshape(-1, 3)
        site = trace.site[rows[:, 0]]
        return rows[:, 0], int(Kind.MARK), rows[:, 1], rows[:, 2], site

    def figures(self) -> str:
        """What the trace adds up to, as a note."""
        found = peak_of(self.lives, len(self.trace))
        times = np.concatenate([[0], self.times])
        found["peak_ns"] = int(times[found.pop("peak_entry")])
        found["entries"] = len(self.trace)
        found["base_blocks"] = self.base
        found["stray_frees"] = self.lives.stray
        found |= self._failures()
        return " ".join(f"{key}={value}" for key, value in found.items())

    def refused(self) -> str:
        """Of the first requests for which there was no memory, in order: bytes, and what was free.

        What the device had free is one more, 0 where that is not known, as in ``figures``.
        """
        rows = np.flatnonzero(self.trace.action == OOM)[:MOST_REFUSED]
        pairs = zip(
            self.trace.size[rows].tolist(), (self.trace.room[rows] + 1).tolist(), strict=True
        )
        return " ".join(f"{asked}:{free}" for asked, free in pairs)

    def _failures(self) -> dict[str, int]:
        """How often memory ran out, and about the last time; none where it never did.

        ``oom_free`` is one more than what the device had free, 0 where that is not known.
        """
        trace = self.trace
        failed = np.flatnonzero(trace.action == OOM)
        if not len(failed):
            return {}
        last = int(failed[-1])
        later = trace.action[last + 1 :]
        return {
            "oom": len(failed),
            "oom_requested": int(trace.size[last]),
            "oom_free": int(trace.room[last]) + 1,
            "oom_last": int(np.isin(later, (OOM, SNAPSHOT)).all()),
        }


def _by_number(
    threads: dict[int, np.ndarray], values: list[np.ndarray], dtype: np.dtype[np.void]
) -> np.ndarray:
    """What is known of each allocation, in the order of object numbers."""
    ticks = [rows["ticks"][rows["kind"] == Kind.ALLOC] for rows in threads.values()]
    order = np.argsort(np.concatenate(ticks), kind="stable")
    return np.concatenate([np.empty(0, dtype), *values])[order]


def _is_worth_keeping(uses: np.ndarray, rows: np.ndarray) -> bool:
    """Whether uses say more than that one stream and one pool served, and frees took no time."""
    if any((uses[name] != 0).any() for name in ("stream", "pool_owner", "pool_number")):
        return True
    allocations = np.cumsum((rows["kind"] == Kind.ALLOC) & (rows["ticks"] > writer.FIRST_TICKS))
    freed = rows["kind"] == Kind.FREE
    at_once = np.sort(allocations[freed])
    reusable = np.sort(uses["reusable"])[: len(at_once)]
    return not np.array_equal(at_once, reusable)


def _places(lives: Lives, snapshot: Snapshot) -> Ints:
    """The sites of blocks. A block that belongs to no line of the program has a site with a name.

    The size identifies a block for cuBLAS if its stack has no frames of C++ that could.
    """
    site = lives.site.copy()
    unknown = site == NO_STACK
    kept = (lives.requested == CUBLAS_BYTES) & (lives.end < 0)
    if snapshot.sites.has_cplusplus:
        kept &= unknown
    old = unknown & (lives.begin < 0)
    if old.any():
        site[old] = snapshot.sites.named(OLDER)
    if 0 < kept.sum() <= MOST_WORKSPACES:
        site[kept] = snapshot.sites.named(WORKSPACE)
    return site


# ---- annotations ----


def numbered(name: str) -> tuple[str, int | None]:
    """``ProfilerStep#12`` as its name and number: steps of one loop are marks of one label."""
    found = _NUMBERED.fullmatch(name)
    return (found[1], int(found[2])) if found else (name, None)


def _annotations(
    snapshot: Snapshot, first_us: int | None, labels: _Labels
) -> tuple[np.ndarray, np.ndarray, int]:
    """Events of the begins, phases, and the time of the last of them.

    An end belongs to the latest begin of its name. A phase that began before the trace begins with
    it; one that was over by then is left out.
    """
    marks = [(writer.FIRST_TICKS + FIRST_ENTRY_NS, labels.of(BEGIN_LABEL), 0)]
    phases: list[tuple[int, int, int, int, int]] = []
    open_: dict[tuple[str, int], list[int]] = {}
    counts: dict[str, int] = {}
    late_ns = 0
    ordered = sorted(snapshot.annotations, key=lambda each: each.time_us)
    for each in ordered[-MOST_MARKS:] if first_us is not None else ():
        name, index = numbered(each.name)
        number = counts.get(name, 0) if index is None else index
        at = (each.time_us - (first_us or 0)) * 1000 + FIRST_ENTRY_NS
        begun = open_.setdefault((each.name, each.accelerator), [])
        late_ns = max(late_ns, at)
        if each.begins:
            counts[name] = counts.get(name, 0) + 1
            begun.append(len(phases))
            phases.append((at, UNKNOWN_TIME, number, labels.of(name), each.accelerator))
            if at >= 0:
                marks.append((writer.FIRST_TICKS + at, labels.of(name), number))
        elif begun:
            row = begun.pop()
            phases[row] = (phases[row][0], at, *phases[row][2:])
        elif at >= 0:
            phases.append((0, at, number, labels.of(name), each.accelerator))
    kept = [(max(0, begin), end, *rest) for begin, end, *rest in phases if end >= 0]
    rows = np.zeros(len(marks), EVENT_DTYPE)
    for row, (ticks, name_number, number) in enumerate(sorted(marks, key=lambda mark: mark[0])):
        rows[row] = (ticks, name_number, number, 0, 0, Kind.MARK, 0)
    made = np.array([(b, e, i, n, a) for b, e, i, n, a in kept], PHASE_DTYPE)
    return rows, np.sort(made, order=("begin", "end"), kind="stable"), late_ns


# ---- names ----


def _records(
    snapshot: Snapshot,
    notes: dict[str, str],
    threads: dict[int, str],
    labels: _Labels,
    rows: dict[int, np.ndarray],
) -> Iterator[bytes]:
    """All meta records, each before those that refer to it."""
    for key, value in notes.items():
        yield writer.note(key, value)
    for number, name in threads.items():
        yield writer.thread(number, name, number == MARKS_THREAD + 1)
    for name, number in labels.numbers.items():
        yield writer.label(number, name)
    for (file, function), number in snapshot.sites.codes.items():
        yield writer.code(number, file, function)
    for (parent, code, line), number in snapshot.sites.sites.items():
        yield writer.site(number, parent, code, line)
    for table, of in rows.items():
        for first in range(0, len(of), ROWS_PER_RECORD):
            yield writer.state(pack(table, first, of[first : first + ROWS_PER_RECORD]))
