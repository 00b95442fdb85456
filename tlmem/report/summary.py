"""One recording or a whole family of processes, read and analysed, ready for any format.

Covers: which files belong to a report, combined totals, the verdict that speaks for a family.
Does not cover: how it looks; see ``text`` and ``json``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from tlmem.analysis import Analysis, analyse
from tlmem.analysis.compare import Side
from tlmem.analysis.leaks.loader_workers import worker_of
from tlmem.analysis.model import SEVERITIES, Attribution, Change, Finding, Peak, Verdict
from tlmem.errors import TlmemError, TooManyFiles
from tlmem.recording import family
from tlmem.recording.identity import Identity, identity_of
from tlmem.recording.reader import Recording, read_for_command

MOST_SERIOUS_FIRST = (
    "leak",
    "native",
    "python",
    "driver",
    "cannot-judge",
    "retained",
    "stable",
)
TOTALS = (
    "current_bytes",
    "peak_bytes",
    "total_bytes",
    "current_count",
    "peak_count",
    "total_count",
    "acquires",
    "releases",
)


@dataclass(frozen=True)
class Process:
    """One recording and what was found in it."""

    recording: Recording
    analysis: Analysis

    @property
    def identity(self) -> Identity:
        """What it is called, and where it ran."""
        return identity_of(self.recording)

    @property
    def worker(self) -> str:
        """``DataLoader worker 0`` if it is one of PyTorch's; empty otherwise."""
        return worker_of(self.recording)

    @property
    def name(self) -> str:
        """What it is called in a family of processes: ``Process 4711 (DataLoader worker 0)``."""
        own = self.identity.name
        if not self.worker:
            return own
        return f"{own[:-1]}, {self.worker})" if own.endswith(")") else f"{own} ({self.worker})"

    @property
    def totals(self) -> dict[str, int]:
        """Counters of all sources from the start of the recording."""
        return {name: int(getattr(self.recording.totals, name)) for name in TOTALS}


@dataclass(frozen=True)
class Summary:
    """Everything a report shows: at least one process, the one asked for in front."""

    processes: tuple[Process, ...]

    @property
    def is_family(self) -> bool:
        """Whether there is more than one process."""
        return len(self.processes) > 1

    @property
    def totals(self) -> dict[str, int]:
        """Sums over all processes; a sum of peaks is an upper bound of the common peak."""
        return {name: sum(process.totals[name] for process in self.processes) for name in TOTALS}

    @property
    def worst(self) -> Process:
        """The process whose verdict is the most serious one, the first of several."""
        speaking = [p for p in self.processes if p.totals["total_count"]] or [self.processes[0]]
        return min(speaking, key=lambda p: MOST_SERIOUS_FIRST.index(p.analysis.verdict.outcome))

    @property
    def verdict(self) -> Verdict:
        """The most serious verdict; of a family it says whose it is."""
        verdict = self.worst.analysis.verdict
        if not self.is_family:
            return verdict
        among = f"{self.worst.name}, one of {len(self.processes)} processes"
        sentence = f"{among}: {verdict.sentence}"
        return replace(verdict, sentence=sentence)

    @property
    def attribution(self) -> Attribution:
        """Sums over all processes; pages they share are counted in each of them."""
        return sum_of([process.analysis.attribution for process in self.processes])

    @property
    def growth(self) -> Change | None:
        """What memory grew by; of a family the sums, each process in its own steady state."""
        every = [p.analysis.growth for p in self.processes if p.analysis.growth is not None]
        if len(every) == 0 or not self.is_family:
            return every[0] if every else None
        return Change(sum_of([growth.parts for growth in every]))

    @property
    def peak(self) -> Peak | None:
        """Memory at its peak; of a family the sums, an upper bound of the common peak."""
        every = [p.analysis.peak for p in self.processes if p.analysis.peak is not None]
        if len(every) == 0 or not self.is_family:
            return every[0] if every else None
        return Peak(sum_of([peak.parts for peak in every]))

    @property
    def findings(self) -> list[Finding]:
        """Findings of all processes, most important first."""
        found = [finding for process in self.processes for finding in process.analysis.findings]
        if self.is_family:
            found.sort(key=lambda finding: (SEVERITIES.index(finding.severity), -finding.bytes))
        return found

    @property
    def side(self) -> Side:
        """What ``analysis.compare`` needs of it."""
        recordings = [process.recording for process in self.processes]
        return Side(recordings, self.verdict, self.findings, self.totals)


def sum_of(every: Sequence[Attribution]) -> Attribution:
    """Each part's sum."""
    sums = {
        field.name: sum(getattr(parts, field.name) for parts in every)
        for field in fields(Attribution)
        if field.name != "known"
    }
    return Attribution(**sums, known=any(parts.known for parts in every))


def summarise(
    paths: Sequence[str], source_roots: Sequence[str] = (), alone: bool = False
) -> Summary:
    """Reads and analyses recordings; one path stands for its whole family.

    Args:
        source_roots: folders whose files may be read for source lines.
        alone: whether a path stands for its own process and no other.

    Raises:
        TlmemError: a file is missing, no recording, empty or damaged beyond use.
        TooManyFiles: the family has more recordings than this process may have open files.
    """
    files: list[Path] = []
    for path in paths:
        for member in (Path(path), *([] if alone else family.find(path))):
            if member not in files:
                files.append(member)
    first = {Path(path) for path in paths}
    processes = []
    for file in files:
        try:
            recording = read_for_command(file, source_roots=source_roots)
            processes.append(Process(recording, analyse(recording, frugal=True)))
        except TooManyFiles:
            raise
        except TlmemError:
            if file in first or not processes:
                raise
    return Summary(tuple(processes))
