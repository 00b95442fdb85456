"""How a program allocates: ``tlmem stats``.

Covers: text and JSON, from a file to an exit code. Does not cover: how it is counted; see
``analysis.allocation_statistics``. See also: docs/reference/cli.md, docs/reference/json.md.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tlmem.analysis.allocation_statistics import (
    AllocationStatistics,
    LineStatistics,
    SizeClass,
    allocation_statistics,
)
from tlmem.analysis.places import place
from tlmem.errors import TlmemError
from tlmem.output.stdio import fail
from tlmem.recording.reader import read_for_command
from tlmem.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

SCHEMA = 1
WIDTH = 100
BAR = 40
MOST_LINES = 5
Order = Callable[[LineStatistics], tuple[int, int]]
ORDERS: dict[str, Order] = {
    "bytes": lambda line: (line.bytes, line.count),
    "count": lambda line: (line.count, line.bytes),
    "temporary": lambda line: (line.temporary_count, line.temporary_bytes),
}
TITLES = {
    "bytes": "Lines that allocate most bytes",
    "count": "Lines that allocate most often",
    "temporary": "Lines with most temporaries",
}


def run_stats(
    path: str,
    most: int = MOST_LINES,
    threshold: int = 1,
    format: str = "text",
    out: str | None = None,
    source_roots: Sequence[str] = (),
) -> int:
    """Writes how a program allocates; returns the exit code.

    Args:
        most: rows of each table of lines.
        threshold: how many allocations of the thread may come before the free of a temporary.

    Returns:
        0; 2 when the file is missing or no recording, or the output cannot be written; 3 when the
        recording is empty or damaged beyond use.
    """
    from tlmem.report import write
    from tlmem.report.json import document

    try:
        recording = read_for_command(path, source_roots=source_roots)
        found = allocation_statistics(recording, threshold)
    except TlmemError as error:
        return fail(str(error), error.exit_code)
    if format == "json":
        return write(document(to_dict(recording, found)), out)
    return write(render_text(recording, found, most), out)


# ---- text ----


def render_text(recording: Recording, found: AllocationStatistics, most: int = MOST_LINES) -> str:
    """The report for people, with a line feed at its end."""
    return "\n\n".join(_blocks(recording, found, most)) + "\n"


def _blocks(recording: Recording, found: AllocationStatistics, most: int) -> Iterator[str]:
    yield _sentence(recording, found)
    if found.sizes:
        yield "\n".join(["Sizes", *_histogram(found.sizes)])
    if len(found.devices) > 1:
        yield "\n".join(["Kinds of memory", *_devices(found)])
    for name in ORDERS:
        rows = list(_lines(found, name, most))
        if rows:
            yield "\n".join([TITLES[name], *rows])
    folded = recording.totals.total_count - found.known
    if folded > 0:
        yield _wrap(
            f"{format_count(folded)} older allocations are known as sums by line only: sizes, "
            "kinds of memory and temporaries are without them."
        )


def _sentence(recording: Recording, found: AllocationStatistics) -> str:
    totals = recording.totals
    words = (
        f"{format_count(totals.total_count)} allocations of {format_bytes(totals.total_bytes)} in "
        f"{format_seconds(recording.seconds)}; peak {format_bytes(totals.peak_bytes)}; "
        f"{format_bytes(totals.current_bytes)} in {format_count(totals.current_count)} objects "
        "left at the end."
    )
    if found.temporary_count:
        others = (
            "its thread allocated again"
            if found.threshold == 0
            else f"its thread allocated more than {format_count(found.threshold)} others"
            if found.threshold > 1
            else "its thread allocated a second time"
        )
        share = found.temporary_count / found.known
        words += (
            f" {format_count(found.temporary_count)} ({share:.0%}) were temporary: freed before "
            f"{others}; {format_bytes(found.temporary_bytes)} in all."
        )
    return _wrap(words)


def _histogram(sizes: Sequence[SizeClass]) -> Iterator[str]:
    most = max(each.count for each in sizes)
    yield f"  {'from':>9}  {'count':>12}  {'bytes':>9}"
    for each in sizes:
        bar = "█" * (-(-each.count * BAR // most))
        yield (
            f"  {_size(each.low):>9}  {format_count(each.count):>12}  "
            f"{format_bytes(each.bytes):>9}  {bar}"
        ).rstrip()


def _size(value: int) -> str:
    """A power of two: ``512 B``, ``64 KiB``."""
    for shift, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if value >= 1 << shift:
            return f"{value >> shift:,} {unit}"
    return f"{value} B"


def _devices(found: AllocationStatistics) -> Iterator[str]:
    for name, count, size in found.devices:
        yield f"  {format_bytes(size):>9}  {format_count(count):>12}  {name}"


def _lines(found: AllocationStatistics, name: str, most: int) -> Iterator[str]:
    order = ORDERS[name]
    for line in sorted(found.lines, key=order, reverse=True)[:most]:
        if order(line)[0] == 0:
            return
        temporary = name == "temporary"
        size = line.temporary_bytes if temporary else line.bytes
        count = line.temporary_count if temporary else line.count
        share = f"{line.temporary_count / line.count:4.0%} of all  " if temporary else ""
        function = f" {line.frame.function}" if line.frame.function else ""
        yield (
            f"  {format_bytes(size):>9}  {format_count(count):>12}  {share}"
            f"{place(line.frame)}{function}"
        )


def _wrap(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


# ---- JSON ----


def to_dict(recording: Recording, found: AllocationStatistics) -> dict[str, Any]:
    """The JSON object; docs/reference/json.md has its keys."""
    totals = recording.totals
    return {
        "schema": SCHEMA,
        "recording": str(recording.path),
        "seconds": recording.seconds,
        "totals": {
            "count": totals.total_count,
            "bytes": totals.total_bytes,
            "peak_bytes": totals.peak_bytes,
            "left_count": totals.current_count,
            "left_bytes": totals.current_bytes,
        },
        "known": found.known,
        "sizes": [asdict(each) for each in found.sizes],
        "kinds": [
            {"device": name, "count": count, "bytes": size} for name, count, size in found.devices
        ],
        "temporary": {
            "threshold": found.threshold,
            "count": found.temporary_count,
            "bytes": found.temporary_bytes,
        },
        "lines": [
            {
                "site": {
                    "file": line.frame.file,
                    "line": line.frame.line,
                    "function": line.frame.function,
                },
                "count": line.count,
                "bytes": line.bytes,
                "temporary_count": line.temporary_count,
                "temporary_bytes": line.temporary_bytes,
            }
            for line in found.lines
        ],
    }
