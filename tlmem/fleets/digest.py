"""What a fleet keeps of one process: about 1 kB of plain values, whatever the recording's size.

Covers: making it from a recording, which is closed at once; to and from plain dicts, which travel
between processes and are the JSON report's. Does not cover: comparing digests (``comparing``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from tlmem.analysis import analyse
from tlmem.analysis.compare import GROWING
from tlmem.analysis.model import SEVERITIES, Analysis, Finding, MarkGrowth
from tlmem.recording.identity import Identity, identity
from tlmem.recording.memory_curves import memory_curves
from tlmem.recording.reader import Recording, read_for_command

MOST_LINES = 3
"""Growing lines that are kept of a process, those with most bytes."""
LONGEST_SENTENCE = 240
LONGEST_NAME = 160
LONGEST_SOURCE = 100
CURVE_POINTS = 32
"""Memory over time is kept as the highest sample in each of so many equal parts of the run."""
RISES = tuple(f"{outcome}-growth" for outcome in GROWING if outcome != "leak")
LINES = ("growing-site", *RISES, "native-site", "python-site")
"""Findings that name what grows; those without a place count only where none has one."""
OF_OUTCOME = {"native": "native_bytes", "python": "python_bytes"}
"""Which growth per step a verdict is about; of others it is that of tracked memory."""


@dataclass(frozen=True)
class Line:
    """A growing line: ``count`` objects of ``bytes``; ``file`` is empty where none is known.

    ``step_bytes`` is what one step of the process keeps, None where steps are not known.
    """

    file: str
    line: int
    function: str
    source: str
    kind: str
    count: int
    bytes: int
    slope_bytes_per_s: float | None
    step_bytes: float | None

    @property
    def place(self) -> str:
        """``ranks.py:12``; in words where there is no line."""
        name = self.file.rpartition("/")[2]
        return f"{name}:{self.line}" if name else ""


@dataclass(frozen=True)
class Digest:
    """One process of a fleet; bytes are whole numbers, None is what is not known.

    ``peak_bytes`` is tracked memory at its peak, ``resident_peak_bytes`` resident memory at its
    own; ``untracked_bytes`` is what of that is neither arrays, pools or tapes, nor Python's heap,
    nor freed, nor the recorder's. ``step`` is the label of the marks that count steps, ``steps``
    how many were judged, ``step_bytes`` growth per step. ``tracked_curve`` and ``resident_curve``
    are thousands of bytes, the highest in each of ``CURVE_POINTS`` equal parts of ``seconds``.
    """

    path: str
    pid: int
    parent_pid: int
    host: str
    rank: int | None
    local_rank: int | None
    world_size: int | None
    worker: str
    script: str
    seconds: float
    events: int
    lost: int
    complete: bool
    exit: str | None
    outcome: str
    sentence: str
    slope_bytes_per_s: float | None
    grown_bytes: int | None
    step: str
    steps: int
    step_bytes: float | None
    peak_bytes: int
    resident_peak_bytes: int | None
    untracked_bytes: int | None
    errors: int
    warnings: int
    lines: tuple[Line, ...]
    tracked_curve: tuple[int, ...]
    resident_curve: tuple[int, ...]

    @property
    def identity(self) -> Identity:
        """Who it is."""
        return Identity(
            self.pid,
            self.parent_pid,
            self.host,
            self.rank,
            self.local_rank,
            self.world_size,
            self.worker,
        )

    @property
    def name(self) -> str:
        """``rank 37 (node b, pid 20227)``."""
        return str(self.identity)

    @property
    def grows(self) -> bool:
        """Whether its verdict is growth of any kind."""
        return self.outcome in GROWING

    @property
    def line(self) -> Line | None:
        """The line that grows most; None when nothing grows, or no line is known."""
        return self.lines[0] if self.lines and self.grows else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the keys of docs/reference/json.md."""
        return {**asdict(self), "name": self.name, "lines": [asdict(line) for line in self.lines]}


_FIELDS = frozenset(field.name for field in fields(Digest))


def from_dict(values: Mapping[str, Any]) -> Digest:
    """A digest from ``Digest.to_dict``; keys that are not known are left out."""
    known = {key: value for key, value in values.items() if key in _FIELDS}
    known["lines"] = tuple(Line(**line) for line in known["lines"])
    known["tracked_curve"] = tuple(known["tracked_curve"])
    known["resident_curve"] = tuple(known["resident_curve"])
    return Digest(**known)


def digest_file(path: str | Path) -> Digest:
    """Reads and analyses one recording, and closes it.

    Raises:
        TlmemError: as ``tlmem.read``.
    """
    recording = read_for_command(path)
    return digest(recording, analyse(recording))


def digest(recording: Recording, found: Analysis) -> Digest:
    """What a fleet keeps of a recording and its analysis."""
    who = identity(recording.info, recording.pid)
    verdict = found.verdict
    steps = next((each for each in found.per_mark if each.tracked_bytes is not None), None)
    step_s = _seconds_per_step(recording, steps)
    at_peak = found.peak.parts if found.peak is not None else found.attribution
    known = at_peak.known or found.attribution.known
    growth = _growth_per_step(verdict.outcome, steps, verdict.slope_bytes_per_s, step_s)
    severities = [finding.severity for finding in found.findings]
    seconds = float(recording.seconds)
    curves = memory_curves(recording, CURVE_POINTS)
    return Digest(
        path=str(recording.path),
        pid=who.pid,
        parent_pid=recording.parent_pid,
        host=who.host,
        rank=who.rank,
        local_rank=who.local_rank,
        world_size=who.world_size,
        worker=who.worker,
        script=_clipped(recording.info.get("script", ""), LONGEST_NAME),
        seconds=round(seconds, 6),
        events=int(recording.event_count),
        lost=int(recording.lost_events),
        complete=bool(recording.complete),
        exit=_clipped(text, LONGEST_NAME) if (text := recording.info.get("exit")) else None,
        outcome=verdict.outcome,
        sentence=_clipped(verdict.sentence, LONGEST_SENTENCE),
        slope_bytes_per_s=_rounded(verdict.slope_bytes_per_s),
        grown_bytes=None if verdict.grown_bytes is None else int(verdict.grown_bytes),
        step=_clipped(steps.label, LONGEST_NAME) if steps else "",
        steps=steps.count if steps else 0,
        step_bytes=growth,
        peak_bytes=int(recording.totals.peak_bytes),
        resident_peak_bytes=int(at_peak.resident_bytes) if known else None,
        untracked_bytes=int(at_peak.other_bytes + at_peak.residual_bytes) if known else None,
        errors=severities.count(SEVERITIES[0]),
        warnings=severities.count(SEVERITIES[1]),
        lines=_lines(found, step_s, growth),
        tracked_curve=curves.tracked,
        resident_curve=curves.resident,
    )


def _lines(found: Analysis, step_s: float | None, growth: float | None) -> tuple[Line, ...]:
    """The lines that grow; of findings without a place only the first, and only if no other is.

    What a step keeps is known exactly of all lines together, and so of a single one.
    """
    growing = [f for f in found.findings if f.kind in LINES and f.severity != "info"]
    placed = [f for f in growing if f.site is not None and f.site.file]
    lines = [_line(finding, step_s) for finding in (placed or growing[:1])[:MOST_LINES]]
    if len(lines) == 1 and growth is not None:
        return (replace(lines[0], step_bytes=growth),)
    return tuple(lines)


def _line(finding: Finding, step_s: float | None) -> Line:
    site, slope = finding.site, finding.slope_bytes_per_s
    per_step = slope * step_s if slope is not None and step_s is not None else None
    return Line(
        file=_clipped(site.file, LONGEST_NAME) if site else "",
        line=site.line if site else 0,
        function=_clipped(site.function, LONGEST_NAME) if site else "",
        source=_clipped(site.text, LONGEST_SOURCE) if site else "",
        kind=finding.kind,
        count=int(finding.count),
        bytes=int(finding.bytes),
        slope_bytes_per_s=_rounded(slope),
        step_bytes=_rounded(per_step),
    )


def _growth_per_step(
    outcome: str, steps: MarkGrowth | None, slope: float | None, step_s: float | None
) -> float | None:
    """What a step keeps, of the kind of memory that the verdict is about."""
    if steps is None:
        return None
    if outcome == "driver":
        return _rounded(slope * step_s) if slope is not None and step_s is not None else None
    rate = getattr(steps, OF_OUTCOME.get(outcome, "tracked_bytes")) or steps.tracked_bytes
    return _rounded(rate.value) if rate is not None else None


def _seconds_per_step(recording: Recording, steps: MarkGrowth | None) -> float | None:
    """How long a step takes in the mean, between the first and the last that were judged."""
    if steps is None:
        return None
    marks = recording.marks
    times = marks.loc[marks["label"] == steps.label, "time_ns"].to_numpy(np.int64)[-steps.count :]
    return float(times[-1] - times[0]) / 1e9 / (len(times) - 1) if len(times) > 1 else None


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(float(number), 3)


def _clipped(text: str, most: int) -> str:
    """At most so many characters, the middle left out."""
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{text[:half]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - half :]}"
