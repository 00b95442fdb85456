"""What differs between two recordings, as text and as JSON.

Covers: how a ``Difference`` looks. Does not cover: what is in it; see ``tlmem.analysis.diff``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tlmem.analysis.diff import Difference, LineChange, Side, Sums
from tlmem.analysis.model import Finding
from tlmem.report.json_report import finding_dict, frame_dict, verdict_dict
from tlmem.report.text import clipped, wrap
from tlmem.units import format_bytes, format_count

SCHEMA = 1
MOST_LINES = 20
MOST_FINDINGS = 10
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
    for change in shown:
        a, b = change.sums_before, change.sums_after
        rows.append(
            f"  {_held(a):>9} {_held(b):>9} {_signed(a, b):>10} "
            f"{format_bytes(a.total_bytes):>9} {format_bytes(b.total_bytes):>9}  {_name(change)}"
        )
    if len(changes) > len(shown):
        rows.append(f"  and {format_count(len(changes) - len(shown))} more (--all shows them)")
    return "\n".join(rows)


def _held(sums: Sums) -> str:
    """Bytes; of views and structs, which have none, how many."""
    return (
        f"{format_count(sums.alive_count)} ×" if _counts(sums) else format_bytes(sums.alive_bytes)
    )


def _counts(sums: Sums) -> bool:
    return bool(sums.total_count) and not sums.total_bytes


def _signed(a: Sums, b: Sums) -> str:
    if _counts(a) or _counts(b):
        change = b.alive_count - a.alive_count
        return f"{'+' if change > 0 else ''}{format_count(change)} ×"
    change = b.alive_bytes - a.alive_bytes
    return f"{'+' if change > 0 else ''}{format_bytes(change)}"


def _name(change: LineChange) -> str:
    frame = change.after or change.before
    if frame is None or not frame.file:
        return "no Python stack"
    name = f"{frame.file.rpartition('/')[2]}:{frame.line} {frame.function}"
    if change.after is None:
        return f"{name} (only in A)"
    if change.before is None:
        return f"{name} (only in B)"
    moved = change.before.line != change.after.line
    return clipped(name, 60) + (f" (A: line {change.before.line})" if moved else "")


def _totals(found: Difference) -> str:
    rows = ["Tracked memory", f"  {'':8} {'A':>9} {'B':>9}"]
    for name, key in _TOTALS:
        a, b = found.before.totals[key], found.after.totals[key]
        rows.append(f"  {name:8} {format_bytes(a):>9} {format_bytes(b):>9}")
    return "\n".join(rows)
