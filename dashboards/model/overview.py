"""The sentences and small tables of the overview.

Covers: totals, findings by severity, whether the recording is complete. Does not cover: the picture
(``layers``).
"""

from __future__ import annotations

from collections import Counter

from tlmem.analysis.model import SEVERITIES, Finding
from tlmem.units import format_bytes, format_count, format_seconds

from .findings import FindingRow, finding_rows
from .loading import Loaded

Rows = list[tuple[str, ...]]


def verdict_sentence(loaded: Loaded) -> str:
    """The verdict; before it is known, what is."""
    if loaded.is_analysed:
        return loaded.analysis.verdict.sentence
    look = loaded.first_look
    events = format_count(look.events)
    return f"Analysing {events} events in {format_seconds(look.seconds)} …"


def severity_counts(findings: tuple[Finding, ...]) -> str:
    """How many findings there are of each severity, in words."""
    counts = Counter(finding.severity for finding in findings)
    words = [
        f"{counts[name]} {name}{'s' if counts[name] != 1 and name != 'info' else ''}"
        for name in SEVERITIES
        if counts[name]
    ]
    return ", ".join(words) if words else "none"


def top_findings(loaded: Loaded, most: int) -> list[FindingRow]:
    """The most important findings."""
    findings = loaded.analysis.findings if loaded.is_analysed else ()
    return finding_rows(findings)[: max(most, 0)]


def tail(text: str, most: int) -> str:
    """The end of a text, at most so many letters."""
    return text if len(text) <= most else f"…{text[1 - most :]}"


def totals_rows(loaded: Loaded) -> Rows:
    """Bytes and counts when judged, at exit, at peak, in total; empty before the events are read.

    What was alive when the program was judged is what findings and sites show.
    """
    if not loaded.is_read:
        return []
    totals = loaded.recording.totals
    judged: Rows = []
    if loaded.is_analysed:
        count, size = loaded.alive_when_judged
        judged = [("when judged", format_bytes(size), format_count(count))]
    return judged + [
        (
            name,
            format_bytes(getattr(totals, f"{key}_bytes")),
            format_count(getattr(totals, f"{key}_count")),
        )
        for name, key in (("at exit", "current"), ("at peak", "peak"), ("total", "total"))
    ]


def completeness(loaded: Loaded) -> str:
    """Whether the recording is whole, and what is not."""
    look = loaded.first_look
    events = format_count(loaded.recording.event_count if loaded.is_read else look.events)
    text = f"{events} events in {format_seconds(loaded.end_ns / 1e9)}"
    if not loaded.is_read:
        return text
    recording = loaded.recording
    if recording.complete:
        return f"{text}, complete"
    reasons = list(recording.problems)
    if not recording.sealed:
        reasons.insert(
            0,
            {
                "open": "the program still runs, or was killed",
                "stopped": "recording ended before the program",
            }[recording.state],
        )
    if recording.lost_events and not reasons:
        reasons.append(f"{format_count(recording.lost_events)} events were lost")
    return f"{text}, not complete: {'; '.join(reasons)}"
