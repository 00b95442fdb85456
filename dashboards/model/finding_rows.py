"""The table of findings: its rows, their order, and which of them a search leaves.

Covers: sorting and filtering. Does not cover: what one finding tells in full (``finding_text``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tlmem.analysis.model import SEVERITIES, Finding
from tlmem.analysis.places import place
from tlmem.units import format_bytes, format_count, format_rate

MARKS = {"error": "‼ error", "warning": "! warning", "info": "· info"}
"""Severities in words and with a sign, so that colour says nothing alone."""
SORTS = ("severity", "place", "bytes", "objects", "growth", "kind")


@dataclass(frozen=True)
class FindingRow:
    """One row, as it is shown; ``index`` is the place of the finding among all."""

    index: int
    severity: str
    kind: str
    bytes: str
    objects: str
    growth: str
    place: str
    function: str

    @property
    def cells(self) -> tuple[str, ...]:
        """Under the heads of ``HEADS``."""
        return (self.severity, self.place, self.bytes, self.objects, self.growth, self.kind)


HEADS = ("severity", "place", "bytes", "objects", "growth", "kind")


def finding_rows(
    findings: Sequence[Finding],
    sort: str = "severity",
    search: str = "",
    severities: Sequence[str] = SEVERITIES,
) -> list[FindingRow]:
    """The rows of a table of findings.

    Args:
        sort: of ``SORTS``; numbers fall, words rise. ``severity`` is the order of the findings,
            most important first.
        search: text that must stand in the kind, place, function, holder or evidence, in any case.
        severities: those that are shown.
    """
    wanted = [
        (index, finding)
        for index, finding in enumerate(findings)
        if finding.severity in severities and _matches(finding, search.casefold())
    ]
    keys = {
        "severity": lambda pair: pair[0],
        "bytes": lambda pair: -pair[1].bytes,
        "objects": lambda pair: -pair[1].count,
        "growth": lambda pair: -(pair[1].slope_bytes_per_s or 0.0),
        "kind": lambda pair: pair[1].kind,
        "place": lambda pair: where(pair[1]),
    }
    wanted.sort(key=keys[sort])
    return [_row(index, finding) for index, finding in wanted]


def where(finding: Finding) -> str:
    """Base name and line, or a dash where there is none."""
    return place(finding.site) if finding.site is not None and finding.site.file else "–"


def _row(index: int, finding: Finding) -> FindingRow:
    slope = finding.slope_bytes_per_s
    return FindingRow(
        index=index,
        severity=MARKS[finding.severity],
        kind=finding.kind,
        bytes=format_bytes(finding.bytes) if finding.bytes else "",
        objects=format_count(finding.count) if finding.count else "",
        growth=format_rate(slope) if slope else "",
        place=where(finding),
        function=finding.site.function if finding.site else "",
    )


def _matches(finding: Finding, search: str) -> bool:
    if not search:
        return True
    site = finding.site
    texts = [finding.kind, finding.evidence, *(holder.name for holder in finding.holders)]
    texts += [str(site), site.function] if site else []
    return any(search in text.casefold() for text in texts)
