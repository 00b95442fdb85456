"""Where resident memory is and what it grew by, as a table for people.

Covers: plain text of one process or of a family. Does not cover: how the parts are found; see
``tlmem.analysis.memory.attribution``.
"""

from __future__ import annotations

import textwrap

from tlmem.analysis.model import Attribution, Change, Peak
from tlmem.units import format_bytes, format_seconds

PARTS = (
    (" ", "tracked", "arrays, tracked"),
    ("-", "untouched", "of these never touched, so not resident"),
    ("+", "pool", "kept by devices, pools and arenas"),
    ("+", "python", "Python's own heap"),
    ("+", "allocator_free", "freed, kept by the C allocator"),
    ("+", "tape", "records on tapes"),
    ("+", "recorder", "the recorder, its file too"),
    ("+", "library", "programs and libraries, code and data"),
    ("+", "native", "native code's allocations"),
    ("+", "mapped", "mapped by libraries and the program"),
    ("+", "file", "files mapped"),
    ("+", "shared", "shared memory"),
    ("+", "stack", "stacks of threads"),
    ("+", "residual", "not explained"),
    ("=", "resident", "resident"),
)
"""Sign, field and name of each row."""
WIDTH = 100
ALWAYS = ("residual", "resident")
LARGEST = 3
LEAST_OF_PEAK = 0.05
HIGHER = 1.02
"""A peak that is hardly higher than the moment of judging is not told apart from it."""


def attribution_block(
    parts: Attribution, growth: Change | None = None, peak: Peak | None = None
) -> str:
    """The parts that add up, beside each what it grew by in the steady state, then the peak."""
    title = "Where resident memory is"
    if growth is not None and growth.begin_s is not None and growth.end_s is not None:
        title += (
            f" after {format_seconds(growth.end_s)}, "
            f"and what it grew by since {format_seconds(growth.begin_s)}"
        )
    rows = [title]
    for sign, name, text in PARTS:
        size = bytes_of(parts, name)
        grown = bytes_of(growth.parts, name) if growth is not None else 0
        if not (size or grown or name in ALWAYS):
            continue
        change = f" {with_sign(grown):>9}" if growth is not None else ""
        rows.append(f"  {sign} {format_bytes(size):>9}{change}  {text}")
    if peak is not None and peak.parts.resident_bytes > HIGHER * parts.resident_bytes:
        rows.append(
            textwrap.fill(
                peak_sentence(peak),
                WIDTH,
                initial_indent="  ",
                subsequent_indent="    ",
                break_on_hyphens=False,
            )
        )
    return "\n".join(rows)


def bytes_of(parts: Attribution, name: str) -> int:
    """One part, by the name of its row."""
    return int(getattr(parts, f"{name}_bytes"))


def with_sign(size: int) -> str:
    """A change, with a sign unless it is nothing."""
    return f"+{format_bytes(size)}" if size > 0 else format_bytes(size) if size else "0 B"


def peak_sentence(peak: Peak) -> str:
    """How much it was at the peak, and the largest parts of that."""
    parts = peak.parts
    sizes = [
        (bytes_of(parts, name) - (parts.untouched_bytes if name == "tracked" else 0), text)
        for sign, name, text in PARTS
        if sign != "=" and name != "untouched"
    ]
    largest = sorted(sizes, reverse=True)[:LARGEST]
    told = ", ".join(
        f"{text} {format_bytes(size)}"
        for size, text in largest
        if size > LEAST_OF_PEAK * parts.resident_bytes
    )
    when = f" after {format_seconds(peak.at_s)}" if peak.at_s is not None else ""
    return f"at the peak{when}: {format_bytes(parts.resident_bytes)} ({told})"
