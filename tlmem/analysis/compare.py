"""Two recordings of a program, before and after a change: what grew, which findings came and went.

A line is known by its file (as seen from the script or the working directory, so that a checkout
elsewhere does not matter; the scripts themselves stand for each other), the function that it is in,
and its rank among the lines there. Its number says little: code above it may have moved it. Lines
of the same function are put into pairs in their order, the more alike the better.

Covers: which line of one is which of the other, sums of each line on both sides, lines whose
sampled heap differs, findings in one or both, reasons to call it worse. Does not cover: how it
looks (``report``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.heap_samples import MEMORIES, Blocks, blocks_of, estimate, unseen
from tlmem.analysis.leaks.alive_at_end import alive_in
from tlmem.analysis.lifetimes import lifetimes
from tlmem.analysis.model import Estimate, Finding, StackFrame, Verdict
from tlmem.analysis.places import Places, place
from tlmem.units import format_count

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

GROWING = ("leak", "native", "python", "driver")
"""Outcomes that say that memory grows."""
MOST_NAMED = 3
SCRIPT = "<script>"
_LIBRARIES = ("python.sites", "python.stdlib", "tlmem.path")
_PAIRED, _ALIKE, _SAME_PLACE = 16, 2, 1
"""To pair two lines counts more than how alike they are: rank decides, likeness between ranks."""
_MOST_PAIRS = 250_000

Key = tuple[str, str]
"""File and function."""
Made = TypeVar("Made")
_Found = dict[StackFrame, tuple["Line", Made]]
_Samples = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Sizes and weights of sampled blocks."""
MOST_ESTIMATES = 1_000
"""Lines of each kind of memory that are compared: those whose sampled heap differs most."""


@dataclass(frozen=True)
class Side:
    """One of the two: recordings (a process and those it started) and what was found in them."""

    recordings: Sequence[Recording]
    verdict: Verdict
    findings: Sequence[Finding]
    totals: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Sums:
    """What a line made: alive when the program was judged, and in all."""

    alive_count: int = 0
    alive_bytes: int = 0
    total_count: int = 0
    total_bytes: int = 0

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.alive_count + other.alive_count,
            self.alive_bytes + other.alive_bytes,
            self.total_count + other.total_count,
            self.total_bytes + other.total_bytes,
        )


NOTHING = Sums()


@dataclass(frozen=True, slots=True)
class LineChange:
    """One line on both sides; a frame is None where it made nothing and nothing was found."""

    before: StackFrame | None
    after: StackFrame | None
    sums_before: Sums
    sums_after: Sums

    @property
    def changed(self) -> bool:
        """Whether any sum differs."""
        return self.sums_before != self.sums_after

    @property
    def weight(self) -> tuple[int, int, int]:
        """How much changed, most important first."""
        a, b = self.sums_before, self.sums_after
        return (
            abs(b.alive_bytes - a.alive_bytes),
            abs(b.alive_count - a.alive_count),
            abs(b.total_bytes - a.total_bytes),
        )


@dataclass(frozen=True)
class HeapChange:
    """A line whose sampled heap differs: the intervals of its estimates do not overlap.

    A frame is None where none of its blocks was sampled; the estimate says what it may have.
    """

    memory: str
    before: StackFrame | None
    after: StackFrame | None
    about_before: Estimate
    about_after: Estimate


@dataclass(frozen=True)
class Difference:
    """What differs between two sides; ``lines`` that changed most come first.

    ``heap`` is None unless the heap was sampled on both sides.
    ``new`` and ``gone`` are warnings and errors on one side only, ``kept`` those on both, as pairs.
    """

    before: Side
    after: Side
    lines: tuple[LineChange, ...]
    new: tuple[Finding, ...]
    gone: tuple[Finding, ...]
    kept: tuple[tuple[Finding, Finding], ...]
    heap: tuple[HeapChange, ...] | None = None


def compare(before: Side, after: Side) -> Difference:
    """All that differs between two sides."""
    first, second = _lines_of(before), _lines_of(after)
    lines: list[LineChange] = []
    same: dict[StackFrame, StackFrame] = {}
    for a, b in _paired(first, second):
        change = LineChange(
            None if a is None else a[0],
            None if b is None else b[0],
            NOTHING if a is None else a[1],
            NOTHING if b is None else b[1],
        )
        if change.before and change.after:
            same[change.after] = change.before
        lines.append(change)
    lines.sort(key=lambda change: change.weight, reverse=True)
    heap = _heap_changes(before, after)
    return Difference(before, after, tuple(lines), *_findings(before, after, same), heap)


def _paired(
    first: dict[Key, _Found[Made]], second: dict[Key, _Found[Made]]
) -> Iterator[tuple[tuple[StackFrame, Made] | None, tuple[StackFrame, Made] | None]]:
    """The lines of both sides, with what they made; None where a line has no counterpart."""
    for key in {**first, **second}:
        # What has become a pair is not kept beside it: there may be very many lines.
        a, b = _in_order(first.pop(key, {})), _in_order(second.pop(key, {}))
        for i, j in align([line for _, line, _ in a], [line for _, line, _ in b]):
            yield (
                None if i is None else (a[i][0], a[i][2]),
                None if j is None else (b[j][0], b[j][2]),
            )


def failures(found: Difference, fail_on: Iterable[str]) -> list[str]:
    """Why the second side is to be refused, a sentence each.

    Args:
        fail_on: of ``new-findings`` and ``growth``. A second side that cannot be judged never
            passes.
    """
    wanted = set(fail_on)
    outcome, earlier = found.after.verdict.outcome, found.before.verdict.outcome
    why = []
    if "new-findings" in wanted and found.new:
        named = [
            finding.kind + (f" at {place(finding.site)}" if finding.site else "")
            for finding in found.new[:MOST_NAMED]
        ]
        several = "findings that are" if len(found.new) > 1 else "finding that is"
        why.append(
            f"B has {format_count(len(found.new))} {several} not in A: {', '.join(named)}"
            + (" and others." if len(found.new) > MOST_NAMED else ".")
        )
    if "growth" in wanted and outcome in GROWING and outcome != earlier:
        why.append(f"B grows ({outcome}) and A does not ({earlier}).")
    if wanted and outcome == "cannot-judge":
        why.append("B cannot be judged, which is never a pass; record it for longer.")
    return why


# ---- which line is which ----


@dataclass(frozen=True, slots=True)
class Line:
    """What is known of one blamed line: ``offset`` lines below the beginning of its function.

    ``mean_bytes`` of what it makes (None: nothing), ``inside`` the functions that do it there.
    """

    line: int
    offset: int
    mean_bytes: int | None
    inside: frozenset[str]


def file_key(file: str, info: Mapping[str, str]) -> str:
    """A name for a file that is the same on another machine, from the notes of the recording."""
    script = info.get("script", "")
    if script and file == script:
        return SCRIPT
    for note in _LIBRARIES:
        for folder in info.get(note, "").split(os.pathsep):
            if inner := _below(file, folder):
                return f"<{note}>/{inner}"
    around = script.replace("\\", "/").rpartition("/")[0]
    return _below(file, around) or _below(file, info.get("cwd", "")) or file


def _below(file: str, folder: str) -> str:
    """The path of a file inside a folder; empty when it is elsewhere."""
    file, folder = file.replace("\\", "/"), folder.replace("\\", "/").rstrip("/")
    return file[len(folder) + 1 :] if folder and file.startswith(f"{folder}/") else ""


def align(first: Sequence[Line], second: Sequence[Line]) -> list[tuple[int | None, int | None]]:
    """Pairs the lines of one function; both in the order of their numbers.

    As many as possible are paired, in order; of those ways the one in which most are alike.

    Returns:
        Positions in both; None where a line has no counterpart.
    """
    if len(first) * len(second) > _MOST_PAIRS:
        pairs = _by_offset(first, second)
    else:
        pairs = _best(len(first), len(second), lambda a, b: _likeness(first[a], second[b]))
    alone_first = set(range(len(first))) - {a for a, _ in pairs}
    alone_second = set(range(len(second))) - {b for _, b in pairs}
    return [
        *pairs,
        *((a, None) for a in sorted(alone_first)),
        *((None, b) for b in sorted(alone_second)),
    ]


def _likeness(first: Line, second: Line) -> int:
    return (
        _PAIRED
        + _ALIKE * (first.mean_bytes == second.mean_bytes)
        + _ALIKE * (first.inside == second.inside)
        + _SAME_PLACE * (first.offset == second.offset)
    )


def _by_offset(first: Sequence[Line], second: Sequence[Line]) -> list[tuple[int, int]]:
    """Of very many lines: those at the same place in their function."""
    places = {line.offset: place for place, line in enumerate(second)}
    return [(a, places[line.offset]) for a, line in enumerate(first) if line.offset in places]


def _best(rows: int, columns: int, likeness: Callable[[int, int], int]) -> list[tuple[int, int]]:
    """The pairs, rising in both, whose likeness adds up to most."""
    sums = [[0] * (columns + 1) for _ in range(rows + 1)]
    for a in range(rows - 1, -1, -1):
        for b in range(columns - 1, -1, -1):
            paired = likeness(a, b) + sums[a + 1][b + 1]
            sums[a][b] = max(paired, sums[a + 1][b], sums[a][b + 1])
    pairs, a, b = [], 0, 0
    while a < rows and b < columns:
        if sums[a][b] == likeness(a, b) + sums[a + 1][b + 1]:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        elif sums[a][b] == sums[a + 1][b]:
            a += 1
        else:
            b += 1
    return pairs


# ---- what each line made ----


def _lines_of(side: Side) -> dict[Key, _Found[Sums]]:
    """What each line of each function made, all processes of a side together."""
    info = side.recordings[0].info
    found: dict[Key, _Found[Sums]] = {}

    def add(frame: StackFrame, line: Line, sums: Sums) -> None:
        those = found.setdefault((file_key(frame.file, info), frame.function), {})
        known = those.get(frame)
        those[frame] = (line, sums) if known is None else (known[0], known[1] + sums)

    for recording in side.recordings:
        for frame, line, sums in _lines_in(recording):
            add(frame, line, sums)
    for finding in _serious(side):
        if finding.site:
            add(finding.site, Line(finding.site.line, 0, None, frozenset()), Sums())
    return found


def _in_order(found: _Found[Made]) -> list[tuple[StackFrame, Line, Made]]:
    rows = [(frame, line, made) for frame, (line, made) in found.items()]
    rows.sort(key=lambda row: row[0].file)
    rows.sort(key=lambda row: row[0].line)
    return rows


def _lines_in(recording: Recording) -> Iterable[tuple[StackFrame, Line, Sums]]:
    """Every line of one recording that made something."""
    places = Places.of(recording)
    alive, held = alive_in(recording, places)
    totals = recording.site_totals
    group = places.group_of_site[totals.index.to_numpy(np.int64)]
    made, bytes_made = (np.zeros(places.count, np.int64) for _ in range(2))
    np.add.at(made, group, totals["alloc_count"].to_numpy(np.int64))
    np.add.at(bytes_made, group, totals["alloc_bytes"].to_numpy(np.int64))
    inside, begins = _inside(recording, places, totals.index.tolist())
    for number, frame in enumerate(places.frames):
        if made[number]:
            line = Line(
                frame.line,
                frame.line - begins.get(number, 0),
                int(bytes_made[number]) // int(made[number]),
                frozenset(inside.get(number, ())),
            )
            sums = (alive[number], held[number], made[number], bytes_made[number])
            yield frame, line, Sums(*map(int, sums))


def _inside(
    recording: Recording, places: Places, sites: list[int]
) -> tuple[dict[int, set[str]], dict[int, int]]:
    """For each line the functions that ran below it, and where its own function begins."""
    table = recording.sites
    functions, first_lines = table["function"].to_dict(), table["first_line"].to_dict()
    inside: dict[int, set[str]] = {}
    begins: dict[int, int] = {}
    for site in sites:
        group, blamed = int(places.group_of_site[site]), int(places.blamed[site])
        begins[group] = int(first_lines.get(blamed, 0))
        while site > 0 and site != blamed:
            inside.setdefault(group, set()).add(str(functions.get(site, "")))
            site = int(places.parents[site])
    return inside, begins


# ---- sampled heap ----


def _heap_changes(before: Side, after: Side) -> tuple[HeapChange, ...] | None:
    """Lines whose intervals are apart, those that differ most first; None without samples."""
    rates = [
        [recording.heap_rate for recording in side.recordings if recording.heap_sampled]
        for side in (before, after)
    ]
    if not all(rates):
        return None
    found = []
    for memory in MEMORIES:
        pairs = list(_paired(_heap_lines_of(before, memory), _heap_lines_of(after, memory)))
        pairs.sort(key=lambda pair: -abs(_held(pair[0]) - _held(pair[1])))
        for a, b in pairs[:MOST_ESTIMATES]:
            first = _about(a, b, max(rates[0]))
            second = _about(b, a, max(rates[1]))
            if first.high < second.low or second.high < first.low:
                frames = [side[0] if side else None for side in (a, b)]
                found.append(HeapChange(memory, frames[0], frames[1], first, second))
    found.sort(key=lambda change: -abs(change.about_before.bytes - change.about_after.bytes))
    return tuple(found)


def _held(line: tuple[StackFrame, _Samples] | None) -> float:
    return 0.0 if line is None else float((line[1][0] * line[1][1]).sum())


def _about(
    line: tuple[StackFrame, _Samples] | None,
    other: tuple[StackFrame, _Samples] | None,
    rate: float,
) -> Estimate:
    """What a line has; where none of its blocks was sampled, what it may have."""
    if line is not None:
        return estimate(*line[1])
    return unseen(other[1][0] if other else np.zeros(0), rate)


def _heap_lines_of(side: Side, memory: str) -> dict[Key, _Found[_Samples]]:
    """Sampled blocks of each line of each function, all processes of a side together."""
    info = side.recordings[0].info
    found: dict[Key, _Found[_Samples]] = {}
    for recording in side.recordings:
        if not recording.heap_count:
            continue
        places = Places.of(recording)
        judged_ns = lifetimes(recording, places).judged_ns
        blocks = blocks_of(recording, places, memory, judged_ns)
        for frame, line, samples in _heap_lines_in(recording, places, blocks):
            those = found.setdefault((file_key(frame.file, info), frame.function), {})
            if frame in those:
                line, known = those[frame]
                samples = (np.append(known[0], samples[0]), np.append(known[1], samples[1]))
            those[frame] = (line, samples)
    return found


def _heap_lines_in(
    recording: Recording, places: Places, blocks: Blocks
) -> Iterator[tuple[StackFrame, Line, _Samples]]:
    """The lines of one recording."""
    inside, begins = _inside(recording, places, np.unique(blocks.site).tolist())
    for number, rows in blocks.by_line():
        frame = places.frames[number]
        offset = frame.line - begins.get(number, 0)
        line = Line(frame.line, offset, None, frozenset(inside.get(number, ())))
        yield frame, line, (blocks.size[rows], blocks.weight[rows])


# ---- findings ----


def _findings(
    before: Side, after: Side, same: Mapping[StackFrame, StackFrame]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...], tuple[tuple[Finding, Finding], ...]]:
    """Findings on the second side only, on the first only, on both.

    One of a kind at a line stands for all of them there: processes of a pool find the same.
    """
    there: dict[tuple[str, StackFrame | None], Finding] = {}
    for finding in _serious(before):
        there.setdefault((finding.kind, finding.site), finding)
    new: list[Finding] = []
    kept: dict[tuple[str, StackFrame | None], tuple[Finding, Finding]] = {}
    for finding in _serious(after):
        site = finding.site and same.get(finding.site)
        known = None if finding.site and not site else there.get((finding.kind, site))
        if known is None:
            new.append(finding)
        else:
            kept.setdefault((finding.kind, site), (known, finding))
    gone = [found for found in _serious(before) if (found.kind, found.site) not in kept]
    return tuple(new), tuple(gone), tuple(kept.values())


def _serious(side: Side) -> list[Finding]:
    """Warnings and errors."""
    return [finding for finding in side.findings if finding.severity != "info"]
