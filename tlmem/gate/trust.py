"""Whether recordings can be judged at all: not when they are short, lossy or incomplete.

Covers: the reasons, a sentence each with the next step, and which of them a user has allowed.
Does not cover: files that cannot be read; those are errors of reading.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlmem.gate.budgets import INCOMPLETE, LOSSY, SHORT
from tlmem.gate.subject import Judged, Subject
from tlmem.units import format_count


@dataclass(frozen=True)
class Doubt:
    """Why a recording cannot be trusted; ``kind`` is what would have to be allowed."""

    kind: str
    sentence: str


def doubts(subject: Subject) -> list[Doubt]:
    """Every reason not to judge.

    A process that others started and that was too short to be judged does not count when the first
    one could be: it ended, and gave everything back.
    """
    found = [doubt for process in subject.processes for doubt in _of(process, subject)]
    first = subject.summary.processes[0].analysis.verdict
    if first.outcome == "cannot-judge" and not found:
        found.append(
            Doubt(SHORT, f"{subject.summary.processes[0].recording.path}: {first.sentence}")
        )
    return found


def _of(judged: Judged, subject: Subject) -> list[Doubt]:
    """What is missing from one recording."""
    recording = judged.recording
    name = str(recording.path)
    found = []
    gone = recording.lost_events + recording.missing_events
    if gone:
        found.append(
            Doubt(
                LOSSY,
                f"{name} is lossy: {format_count(gone)} events were lost or are missing; record "
                "again with more room.",
            )
        )
    if not recording.sealed and not recording.lost_events:
        verdict = judged.process.analysis.verdict
        found.append(
            Doubt(
                INCOMPLETE,
                f"{name} was never sealed: the program was killed or still runs, or the file was "
                f"cut. What is there says: {verdict.sentence}",
            )
        )
    elif recording.problems and not gone:
        found.append(Doubt(INCOMPLETE, f"{name} is damaged: {recording.problems[0]}."))
    return found
