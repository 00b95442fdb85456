"""What is to be judged: recordings, what was found in them, and a baseline beside them.

Covers: reading once, findings with and without suppressions, per process what growth needs.
Does not cover: values (``measure``), whether the recording can be trusted (``decision``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from tlmem.analysis.compare import Difference, Side, compare
from tlmem.analysis.growth.heap_lines import SampledGrowth, sampled_growths
from tlmem.analysis.judge import OF_KIND
from tlmem.analysis.lifetimes import Lifetimes, lifetimes
from tlmem.analysis.memory.devices import with_devices
from tlmem.analysis.model import Finding, Verdict
from tlmem.analysis.peak.explained import Known
from tlmem.analysis.places import Places
from tlmem.gate import suppressions
from tlmem.gate.budget_kinds import LEAK_CLASSES
from tlmem.gate.suppressions import Suppression, Used
from tlmem.recording.reader import Recording
from tlmem.report.summary import Process, Summary, summarise

LEAKS = "growing-site"
RISES = ("tape-growth", "native-growth", "shared-growth", "python-growth", "driver-growth")
"""Kinds of growth outside arrays. Of tapes it names the outcome; else the largest does."""


def kinds_of_growth(metric: str) -> tuple[str, ...]:
    """Kinds of findings that the growth of a metric shows in."""
    if metric == "resident":
        return (LEAKS, *RISES)
    special = {"tracked": (LEAKS,), "device": ("driver-growth", "pool-never-hits")}
    return special.get(metric, (f"{metric}-growth",))


class Judged:
    """One process: what was found in it, and what growth is measured from, made when asked for."""

    def __init__(self, process: Process) -> None:
        self.process = process

    @property
    def recording(self) -> Recording:
        """Its recording."""
        return self.process.recording

    @cached_property
    def places(self) -> Places:
        """Its lines."""
        return Places.of(self.recording)

    @cached_property
    def lives(self) -> Lifetimes:
        """Its objects."""
        return lifetimes(self.recording, self.places)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Its memory samples, with those of devices."""
        return with_devices(self.recording)

    @cached_property
    def blocks(self) -> Known:
        """Its objects on the clock of events, with roles and modules."""
        return Known.of(self.recording)

    def is_growing(self, metric: str) -> bool:
        """Whether the analysis found growth of this kind of memory."""
        kinds = kinds_of_growth(metric)
        return any(finding.kind in kinds for finding in self.process.analysis.findings)

    @cached_property
    def sampled(self) -> tuple[SampledGrowth, ...]:
        """Lines whose native memory or Python objects grow by their samples."""
        return sampled_growths(self.recording, self.places, self.lives)

    @property
    def has_gathered(self) -> bool:
        """Whether results were kept one by one, joined into one array and freed."""
        return any(finding.kind == "gathered" for finding in self.process.analysis.findings)


@dataclass(frozen=True)
class Subject:
    """A program's recordings, as a report shows them, with suppressions applied."""

    summary: Summary
    suppressions: tuple[Suppression, ...] = ()

    @cached_property
    def processes(self) -> tuple[Judged, ...]:
        """Every process, the one that was asked for in front."""
        return tuple(Judged(process) for process in self.summary.processes)

    @cached_property
    def _sorted(self) -> tuple[list[Finding], list[Finding], list[Used]]:
        leaks = [f for f in self.summary.findings if f.kind in LEAK_CLASSES]
        left, gone, used = suppressions.apply(leaks, self.suppressions)
        kept = [f for f in self.summary.findings if not any(f is other for other in gone)]
        return kept, gone, used

    @property
    def findings(self) -> list[Finding]:
        """Findings that are not suppressed, most important first."""
        return self._sorted[0]

    @property
    def suppressed(self) -> list[Finding]:
        """Findings that are."""
        return self._sorted[1]

    @property
    def used(self) -> list[Used]:
        """What each suppression did."""
        return self._sorted[2]

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict; a leak whose every line is suppressed is one no more."""
        verdict = self.summary.verdict
        gone = {f.site for f in self.suppressed if f.kind == LEAKS}
        left = [f for f in self.findings if f.kind == LEAKS]
        if verdict.outcome != "leak" or left or not gone:
            return verdict
        others = [f for kind in RISES for f in self.findings if f.kind == kind]
        if others:
            others.sort(key=lambda found: (found.kind != RISES[0], -found.bytes))
            kind = others[0].kind.removesuffix("-growth")
            outcome = OF_KIND.get(kind, kind)
            return Verdict(
                outcome, others[0].evidence, others[0].slope_bytes_per_s, others[0].bytes
            )
        lines = "growing line is" if len(gone) == 1 else f"{len(gone)} growing lines are"
        text = f"No leak found: the {lines} suppressed, and nothing else grows."
        return Verdict("stable", text, 0.0, 0)

    @cached_property
    def side(self) -> Side:
        """What ``analysis.compare`` needs of it, suppressions applied."""
        return replace(self.summary.side, verdict=self.verdict, findings=self.findings)

    def since(self, baseline: Subject) -> Difference:
        """What is new beside a baseline."""
        return compare(baseline.side, self.side)


def read(
    paths: Sequence[Path | str],
    known: tuple[Suppression, ...] = (),
    source_roots: Sequence[str] = (),
) -> Subject:
    """Reads and analyses recordings.

    Raises:
        TlmemError: a file is missing, no recording, empty or damaged beyond use.
    """
    return Subject(summarise([str(path) for path in paths], source_roots), known)
