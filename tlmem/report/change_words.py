"""How what changed between two recordings is said, on paper and on screens.

Covers: what a line holds, by how much that changed, which line it is. Does not cover: which lines
changed; see ``tlmem.analysis.compare``.
"""

from __future__ import annotations

from tlmem.analysis.compare import LineChange, Sums
from tlmem.analysis.places import place
from tlmem.report.text import clipped
from tlmem.units import format_bytes, format_count


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


def line_name(line: LineChange, before: str, after: str, most: int = 200) -> str:
    """A line and its function; what is only in one recording, or moved, says so.

    Args:
        before: what the first recording is called.
        after: what the second one is called.
        most: characters of line and function.
    """
    frame = line.after or line.before
    if frame is None or not frame.file:
        return "no Python stack"
    text = clipped(f"{place(frame)} {frame.function}", most)
    if line.after is None:
        return f"{text} (only {before})"
    if line.before is None:
        return f"{text} (only {after})"
    if line.before.line != line.after.line:
        return f"{text} ({before}: line {line.before.line})"
    return text


def _counts(sums: Sums) -> bool:
    return bool(sums.total_count) and not sums.total_bytes
