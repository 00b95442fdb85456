"""What differs between two recordings: ``tlmem diff``, as text and as JSON.

Covers: from files to an exit code; how a ``Difference`` is written, on paper and on screens.
Does not cover: what is in it; see ``tlmem.analysis.compare``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from tlmem.analysis.compare import (
    Difference,
    HeapChange,
    LineChange,
    Side,
    Sums,
    compare,
    failures,
)
from tlmem.analysis.model import Estimate, Finding
from tlmem.analysis.places import with_function
from tlmem.errors import TlmemError
from tlmem.output.stdio import fail
from tlmem.report import write
from tlmem.report.json import estimate_dict, finding_dict, frame_dict, pieces, verdict_dict
from tlmem.report.summary import summarise
from tlmem.report.text import clipped, wrap
from tlmem.units import format_bytes, format_count

Change = TypeVar("Change", LineChange, HeapChange)

SCHEMA = 1
MOST_LINES = 20
MOST_FINDINGS = 10
MOST_NAME = 60
_NUMBERS = ("alive_count", "alive_bytes", "total_count", "total_bytes")
_TOTALS = (("at exit", "current_bytes"), ("at peak", "peak_bytes"), ("total", "total_bytes"))


def run_diff(
    before: str,
    after: str,
    format: str = "text",
    out: str | None = None,
    every: bool = False,
    fail_on: Sequence[str] = (),
) -> int:
    """Writes what differs between two recordings and returns the exit code.

    Returns:
        0; 1 when ``fail_on`` asks to refuse the second one, with a sentence for each reason on
        stderr; 2 when a file is missing or no recording, or the output cannot be written; 3 when a
        recording is empty or damaged beyond use.
    """
    try:
        found = compare(summarise([before]).side, summarise([after]).side)
    except TlmemError as error:
        return fail(str(error), error.exit_code)
    render = render_json if format == "json" else render_text
    code = write(render(found, every), out)
    why = failures(found, fail_on)
    for sentence in why:
        sys.stderr.write(f"tlmem: {sentence}\n")
    return code or bool(why)


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
        _heap(found.heap, every),
        _totals(found),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def render_json(found: Difference, every: bool = True) -> Iterator[str]:
    """One JSON object in pieces, with a line feed at its end; every line that changed is in it."""
    return pieces(to_dict(found))


def to_dict(found: Difference) -> dict[str, Any]:
    """A difference as plain dicts, texts and numbers; lines are made when they are asked for."""
    return {
        "schema": SCHEMA,
        "a": _side_dict(found.before),
        "b": _side_dict(found.after),
        "findings": {
            "new": [finding_dict(finding) for finding in found.new],
            "gone": [finding_dict(finding) for finding in found.gone],
            "both": [{"a": finding_dict(a), "b": finding_dict(b)} for a, b in found.kept],
        },
        "lines": (_line_dict(change) for change in found.lines if change.changed),
        **({} if found.heap is None else {"heap": [_heap_dict(change) for change in found.heap]}),
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


def _heap_dict(change: HeapChange) -> dict[str, Any]:
    return {
        "memory": change.memory,
        "site_a": frame_dict(change.before),
        "site_b": frame_dict(change.after),
        "a": estimate_dict(change.about_before),
        "b": estimate_dict(change.about_after),
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
        return "No line allocated or kept more or less."
    rows = [
        "Lines that changed most: bytes alive when the program was judged, and in total",
        f"  {'alive A':>9} {'alive B':>9} {'change':>10} {'total A':>9} {'total B':>9}  line",
    ]

    def row(line: LineChange) -> str:
        a, b = line.sums_before, line.sums_after
        return (
            f"  {held(a):>9} {held(b):>9} {changed_by(a, b):>10} "
            f"{format_bytes(a.total_bytes):>9} {format_bytes(b.total_bytes):>9}  "
            f"{line_name(line, 'A', 'B', MOST_NAME)}"
        )

    return "\n".join([*rows, *_shown(changes, row, every)])


def _heap(changes: Sequence[HeapChange] | None, every: bool) -> str:
    """Lines whose sampled heap differs; empty unless both sides have samples."""
    if changes is None:
        return ""
    if not changes:
        return "Sampled heap: no line differs, the 95% intervals of A and B overlap."
    rows = [
        "Sampled heap alive when judged: lines whose 95% intervals do not overlap",
        f"  {'memory':<6} {'alive A':>20} {'alive B':>20} {'change':>12}  line",
    ]

    def row(change: HeapChange) -> str:
        a, b = change.about_before, change.about_after
        grown = b.bytes - a.bytes
        by = f"{a.sign or b.sign}{'+' if grown > 0 else ''}{format_bytes(grown)}"
        return (
            f"  {change.memory:<6} {_between(a):>20} {_between(b):>20} {by:>12}  "
            f"{line_name(change, 'A', 'B', MOST_NAME)}"
        )

    return "\n".join([*rows, *_shown(changes, row, every)])


def _shown(changes: Sequence[Change], row: Callable[[Change], str], every: bool) -> Iterator[str]:
    """A row for each of the first changes, or for every one, and how many more there are."""
    most = len(changes) if every else MOST_LINES
    yield from map(row, changes[:most])
    if len(changes) > most:
        yield f"  and {format_count(len(changes) - most)} more (--all shows them)"


def _between(about: Estimate) -> str:
    """The interval of an estimate, or the exact figure."""
    low, high = format_bytes(about.low), format_bytes(about.high)
    return f"{low} to {high}" if about.sign else high


def _totals(found: Difference) -> str:
    rows = ["Tracked memory", f"  {'':8} {'A':>9} {'B':>9}"]
    for name, key in _TOTALS:
        a, b = found.before.totals[key], found.after.totals[key]
        rows.append(f"  {name:8} {format_bytes(a):>9} {format_bytes(b):>9}")
    return "\n".join(rows)


def held(sums: Sums) -> str:
    """Bytes alive; of views and structs, which have none, how many."""
    if _counts(sums):
        return f"{format_count(sums.alive_count)} ×"
    return format_bytes(sums.alive_bytes)


def changed_by(a: Sums, b: Sums) -> str:
    """By how much what is alive changed, with its sign; in objects where bytes say nothing."""
    bytes_ = b.alive_bytes - a.alive_bytes
    count = b.alive_count - a.alive_count
    if _counts(a) or _counts(b) or (not bytes_ and count):
        return f"{'+' if count > 0 else ''}{format_count(count)} ×"
    return f"{'+' if bytes_ > 0 else ''}{format_bytes(bytes_)}"


def line_name(line: LineChange | HeapChange, before: str, after: str, most: int = 200) -> str:
    """A line and its function; what is only in one recording, or moved, says so.

    Args:
        before: what the first recording is called.
        after: what the second one is called.
        most: characters of line and function.
    """
    frame = line.after or line.before
    if frame is None or not frame.file:
        return "no Python stack"
    text = clipped(with_function(frame), most)
    if line.after is None:
        return f"{text} (only {before})"
    if line.before is None:
        return f"{text} (only {after})"
    if line.before.line != line.after.line:
        return f"{text} ({before}: line {line.before.line})"
    return text


def _counts(sums: Sums) -> bool:
    return bool(sums.total_count) and not sums.total_bytes
