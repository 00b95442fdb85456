"""Two recordings of a program, before and after a change: what grew, which findings came and went.

Covers: sums of each line on both sides, findings in one or both, reasons to call it worse.
Does not cover: which line is which (``aligning``), how it looks (``report``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tlmem.analysis.aligning import Line, align, file_key
from tlmem.analysis.leaks.alive_at_end import alive_in
from tlmem.analysis.model import Finding, Frame, Verdict
from tlmem.analysis.places import Places, place
from tlmem.units import format_count

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

GROWING = ("leak", "native", "python", "driver")
"""Outcomes that say that memory grows."""
FAIL_ON = ("new-findings", "growth")
MOST_NAMED = 3

Key = tuple[str, str]
"""File and function."""


@dataclass(frozen=True)
class Side:
    """One of the two: recordings (a process and those it started) and what was found in them."""

    recordings: Sequence[Recording]
    verdict: Verdict
    findings: Sequence[Finding]
    totals: Mapping[str, int]


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class LineChange:
    """One line on both sides; a frame is None where it made nothing and nothing was found."""

    before: Frame | None
    after: Frame | None
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
class Difference:
    """What differs between two sides; ``lines`` that changed most come first.

    ``new`` and ``gone`` are warnings and errors on one side only, ``kept`` those on both, as pairs.
    """

    before: Side
    after: Side
    lines: tuple[LineChange, ...]
    new: tuple[Finding, ...]
    gone: tuple[Finding, ...]
    kept: tuple[tuple[Finding, Finding], ...]


def compare(before: Side, after: Side) -> Difference:
    """All that differs between two sides."""
    first, second = _lines_of(before), _lines_of(after)
    lines: list[LineChange] = []
    same: dict[Frame, Frame] = {}
    for key in {**first, **second}:
        a, b = _in_order(first.get(key, {})), _in_order(second.get(key, {}))
        for i, j in align([line for _, line, _ in a], [line for _, line, _ in b]):
            change = LineChange(
                None if i is None else a[i][0],
                None if j is None else b[j][0],
                Sums() if i is None else a[i][2],
                Sums() if j is None else b[j][2],
            )
            if change.before and change.after:
                same[change.after] = change.before
            lines.append(change)
    lines.sort(key=lambda change: change.weight, reverse=True)
    return Difference(before, after, tuple(lines), *_findings(before, after, same))


def failures(found: Difference, fail_on: Iterable[str]) -> list[str]:
    """Why the second side is to be refused, a sentence each.

    Args:
        fail_on: of ``FAIL_ON``. A second side that cannot be judged never passes.
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
        why.append(f"B grows ({outcome}) and A does not so ({earlier}).")
    if wanted and outcome == "cannot-judge":
        why.append("B cannot be judged, which is never a pass; record it for longer.")
    return why


# ---- lines ----

_Found = dict[Frame, tuple[Line, Sums]]


def _lines_of(side: Side) -> dict[Key, _Found]:
    """What each line of each function made, all processes of a side together."""
    info = side.recordings[0].info
    found: dict[Key, _Found] = {}

    def add(frame: Frame, line: Line, sums: Sums) -> None:
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


def _in_order(found: _Found) -> list[tuple[Frame, Line, Sums]]:
    rows = [(frame, line, sums) for frame, (line, sums) in found.items()]
    return sorted(rows, key=lambda row: (row[0].line, row[0].file))


def _lines_in(recording: Recording) -> Iterable[tuple[Frame, Line, Sums]]:
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
        names = inside.setdefault(group, set())
        while site > 0 and site != blamed:
            names.add(str(functions.get(site, "")))
            site = int(places.parents[site])
    return inside, begins


# ---- findings ----


def _findings(
    before: Side, after: Side, same: Mapping[Frame, Frame]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...], tuple[tuple[Finding, Finding], ...]]:
    """Findings on the second side only, on the first only, on both.

    One of a kind at a line stands for all of them there: processes of a pool find the same.
    """
    there: dict[tuple[str, Frame | None], Finding] = {}
    for finding in _serious(before):
        there.setdefault((finding.kind, finding.site), finding)
    new: list[Finding] = []
    kept: dict[tuple[str, Frame | None], tuple[Finding, Finding]] = {}
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
