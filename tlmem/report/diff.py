"""What differs between two recordings, as text and as JSON.

Covers: how a ``Difference`` looks. Does not cover: what is in it; see ``tlmem.analysis.compare``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tlmem.analysis.compare import Difference, LineChange, Side, Sums
from tlmem.analysis.model import Finding
from tlmem.report.change_words import changed_by, held, line_name
from tlmem.report.json import finding_dict, frame_dict, verdict_dict
from tlmem.report.text import wrap
from tlmem.units import format_bytes, format_count

SCHEMA = 1
MOST_LINES = 20
MOST_FINDINGS = 10
MOST_NAME = 60
_NUMBERS = ("alive_count", "alive_bytes", "total_count", "total_bytes")
_TOTALS = (("at exit", "current_bytes"), ("at peak", "peak_bytes"), ("in all", "total_bytes"))


def render_text(found: Difference, every: bool = False) -> str:
    """Both verdicts, findings that came and went, then the lines that changed most.

    Args:
        every: all lines that changed, however many.
    """
    blocks = [
        "\n".join([_side("A", found.before), _side("B", found.after)]),
        _findings("New in B", found.new),
        _findings("Gone in B", found.gone),
        _findings("In both, as B has them", [after for _, after in found.kept]),
        _lines([change for change in found.lines if change.changed], every),
        _totals(found),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def render_json(found: Difference, every: bool = True) -> str:
    """One JSON object, with a line feed at its end; every line that changed is in it."""
    return json.dumps(to_dict(found), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def to_dict(found: Difference) -> dict[str, Any]:
    """A difference as plain dicts, lists, texts and numbers."""
    return {
        "schema": SCHEMA,
        "a": _side_dict(found.before),
        "b": _side_dict(found.after),
        "findings": {
            "new": [finding_dict(finding) for finding in found.new],
            "gone": [finding_dict(finding) for finding in found.gone],
            "both": [{"a": finding_dict(a), "b": finding_dict(b)} for a, b in found.kept],
        },
        "lines": [_line_dict(change) for change in found.lines if change.changed],
    }


def _side_dict(side: Side) -> dict[str, Any]:
    return {
        "path": str(side.recordings[0].path),
        "processes": len(side.recordings),
        "verdict": verdict_dict(side.verdict),
        "totals": dict(side.totals),
    }


def _line_dict(change: LineChange) -> dict[str, Any]:
    return {
        "site_a": frame_dict(change.before),
        "site_b": frame_dict(change.after),
        "a": _sums_dict(change.sums_before),
        "b": _sums_dict(change.sums_after),
    }


def _sums_dict(sums: Sums) -> dict[str, int]:
    return {name: getattr(sums, name) for name in _NUMBERS}


def _side(letter: str, side: Side) -> str:
    several = f" ({len(side.recordings)} processes)" if len(side.recordings) > 1 else ""
    return f"{letter}  {side.recordings[0].path}{several}\n{wrap(side.verdict.sentence, '   ')}"


def _findings(title: str, findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    rows = [title]
    for finding in findings[:MOST_FINDINGS]:
        rows.append(wrap(f"{finding.severity}, {finding.kind}: {finding.evidence}", "  "))
    if len(findings) > MOST_FINDINGS:
        rows.append(f"  and {format_count(len(findings) - MOST_FINDINGS)} more")
    return "\n".join(rows)


def _lines(changes: list[LineChange], every: bool) -> str:
    if not changes:
        return "No line made more or less, or kept more or less."
    rows = [
        "Lines that changed most: bytes alive when the program was judged, bytes in all",
        f"  {'alive A':>9} {'alive B':>9} {'change':>10} {'in all A':>9} {'in all B':>9}  line",
    ]
    shown = changes if every else changes[:MOST_LINES]
    for line in shown:
        a, b = line.sums_before, line.sums_after
        rows.append(
            f"  {held(a):>9} {held(b):>9} {changed_by(a, b):>10} "
            f"{format_bytes(a.total_bytes):>9} {format_bytes(b.total_bytes):>9}  "
            f"{line_name(line, 'A', 'B', MOST_NAME)}"
        )
    if len(changes) > len(shown):
        rows.append(f"  and {format_count(len(changes) - len(shown))} more (--all shows them)")
    return "\n".join(rows)


def _totals(found: Difference) -> str:
    rows = ["Tracked memory", f"  {'':8} {'A':>9} {'B':>9}"]
    for name, key in _TOTALS:
        a, b = found.before.totals[key], found.after.totals[key]
        rows.append(f"  {name:8} {format_bytes(a):>9} {format_bytes(b):>9}")
    return "\n".join(rows)
