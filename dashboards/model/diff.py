"""Two recordings beside each other, as the screen ``diff`` shows them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from tlmem.analysis.compare import Difference, Side, compare
from tlmem.report.diff import changed_by, held, line_name
from tlmem.report.heap import HEAP_NAMES, range_of
from tlmem.report.kinds import kind_name
from tlmem.report.summary import Process, Summary
from tlmem.units import format_bytes, format_count

from .findings import MARKS, where
from .loading import Loaded, family_of
from .tables import MOST_ROWS, TableData


def difference(members: Sequence[Loaded], other: Path) -> Difference:
    """What differs between another recording, before, and the one that is open, after.

    Raises:
        TlmemError: the other one cannot be read.
    """
    before = [Loaded(path) for path in family_of(other)]
    return compare(_side(before), _side(members))


def _side(members: Sequence[Loaded]) -> Side:
    for member in members:
        member.read_events()
    return Summary(tuple(Process(m.recording, m.analysis) for m in members)).side


def finding_changes(found: Difference) -> TableData:
    """Warnings and errors that are new, gone, or in both."""
    rows = []
    groups = (
        ("+ new", found.new),
        ("- gone", found.gone),
        ("= both", [after for _, after in found.kept]),
    )
    for name, findings in groups:
        for finding in findings:
            rows.append(
                (
                    name,
                    MARKS[finding.severity],
                    where(finding),
                    kind_name(finding.kind),
                    format_bytes(finding.bytes) if finding.bytes else "",
                    finding.kind,
                )
            )
    return TableData(("", "severity", "place", "what", "bytes", "code"), rows, ("bytes",))


def heap_changes(found: Difference) -> TableData:
    """Lines whose sampled heap differs: the intervals of both estimates are apart."""
    rows = []
    for change in (found.heap or ())[:MOST_ROWS]:
        a, b = change.about_before, change.about_after
        grown = b.bytes - a.bytes
        rows.append(
            (
                HEAP_NAMES[change.memory],
                range_of(a),
                range_of(b),
                f"{a.sign or b.sign}{'+' if grown > 0 else ''}{format_bytes(grown)}",
                line_name(change, "before", "now"),
            )
        )
    heads = ("sampled heap", "alive before", "alive now", "change", "line")
    return TableData(heads, rows, heads[1:4])


def line_changes(found: Difference) -> TableData:
    """Lines that keep or make more or less, those that changed most first."""
    changed = sum(line.changed for line in found.lines)
    rows = []
    for line in islice((line for line in found.lines if line.changed), MOST_ROWS):
        a, b = line.sums_before, line.sums_after
        rows.append(
            (
                held(a),
                held(b),
                changed_by(a, b),
                format_bytes(a.total_bytes),
                format_bytes(b.total_bytes),
                line_name(line, "before", "now"),
            )
        )
    heads = ("alive before", "alive now", "change", "total before", "total now", "line")
    left_out = changed > MOST_ROWS
    note = f"of {format_count(changed)} lines the first {format_count(MOST_ROWS)} listed"
    return TableData(heads, rows, heads[:-1], note if left_out else "")
