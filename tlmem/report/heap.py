"""Sampled heap in words, rows and trees of stacks; every figure of it is an estimate.

Covers: what reports, the peak, flame graphs and exports say about samples. Does not cover:
estimates (``analysis.heap_samples``), whether a line grows (``analysis.growth.heap_lines``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tlmem.analysis.heap_samples import MEMORIES, blocks_of
from tlmem.analysis.lifetimes import lifetimes
from tlmem.analysis.model import Attribution, Estimate, HeldHeap, Rate, StackFrame, interval
from tlmem.analysis.places import Places, in_full
from tlmem.report.site_sums import StackTree, tree_of
from tlmem.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

MOST_HEAP = 10
"""Lines of sampled heap, of native memory and of Python's objects."""
HEAP_NAMES = {memory: name[0].upper() + name[1:] for memory, name in MEMORIES.items()}
HEAP_NOTE = (
    "Estimates (\N{ALMOST EQUAL TO}) from the blocks that record --heap sampled. "
    "Arrays and tensors are not among them."
)
HEAP_MEASURES = tuple(
    f"\N{ALMOST EQUAL TO} {measure} of {name}"
    for name in MEMORIES.values()
    for measure in (
        "bytes alive when judged",
        "blocks alive when judged",
        "bytes allocated in total",
        "blocks allocated in total",
    )
)
"""Names of the rows of ``heap_tree``."""
LARGEST = float(1 << 53)
"""Of one stack; whole numbers up to here are exact in every tool. Damaged files may have more."""


def held_rows(
    heap: Sequence[HeldHeap], indent: str = "", resident: Mapping[str, int] | None = None
) -> Iterator[str]:
    """Lines that hold most of the sampled heap, native memory and Python's apart.

    Args:
        resident: how much of each memory is resident, where that is known.
    """
    for held in heap:
        known = (resident or {}).get(held.memory)
        of = f", of {format_bytes(known)} resident" if known else ""
        yield f"{indent}{HEAP_NAMES[held.memory]}: {amount(held.whole)}{of}"
        yield f"{indent}  {'bytes':>11}  {'95% interval':<20} {'blocks':>11}  line"
        for line in held.lines[:MOST_HEAP]:
            about = line.about
            yield (
                f"{indent}  {about.sign + format_bytes(about.bytes):>11}  {range_of(about):<20} "
                f"{about.sign + format_count(about.count):>11}  {named(line.site)}"
            )
        left_out = lines_left_out(held, MOST_HEAP)
        if left_out:
            yield f"{indent}  and {left_out}"


def heap_folded(recording: Recording) -> str:
    """What of the samples is not known because events were folded; empty where all are."""
    if not recording.heap_from_ns:
        return ""
    since = format_seconds(recording.heap_from_ns / 1e9)
    return f"Of samples from before {since} only those of blocks that were alive then are known."


def resident_of(parts: Attribution) -> dict[str, int]:
    """What of resident memory the lines of each sampled memory are estimates of."""
    if not parts.known:
        return {}
    return {"native": parts.native_bytes + parts.mapped_bytes, "python": parts.python_bytes}


def amount(about: Estimate) -> str:
    """``\N{ALMOST EQUAL TO} 4.10 MB (95% CI 4.02\N{EN DASH}4.20)``, or the exact figure."""
    if not about.sign:
        return format_bytes(about.bytes)
    doubt = interval(Rate(about.bytes, about.low, about.high), format_bytes)
    return f"{about.sign}{format_bytes(about.bytes)} ({doubt})"


def range_of(about: Estimate) -> str:
    """The interval of an estimate; of an exact figure that word."""
    return f"{format_bytes(about.low)} to {format_bytes(about.high)}" if about.sign else "exact"


def lines_left_out(held: HeldHeap, shown: int) -> str:
    """How many lines are not shown, and their bytes; empty when all are."""
    left_out = max(0, len(held.lines) - shown) + held.others
    if not left_out:
        return ""
    size = sum(line.about.bytes for line in held.lines[shown:])
    size += held.rest.bytes if held.rest else 0
    lines = "line" if left_out == 1 else "lines"
    return f"{format_count(left_out)} more {lines}: {held.whole.sign}{format_bytes(size)}"


def named(frame: StackFrame | None) -> str:
    """``file.py:10 in function``."""
    if frame is None or not frame.file:
        return "no Python stack"
    return in_full(frame)


def heap_tree(recording: Recording) -> StackTree:
    """The tree of stacks with estimates: of each memory bytes and blocks alive, then in all."""
    places = Places.of(recording)
    judged_ns = lifetimes(recording, places).judged_ns
    sums = []
    for memory in MEMORIES:
        for alive_ns in (judged_ns, None):
            blocks = blocks_of(recording, places, memory, alive_ns)
            for weight in (blocks.size * blocks.weight, blocks.weight):
                sums.append(np.bincount(blocks.site, weight, len(places.group_of_site)))
    values = np.rint(np.minimum(np.stack(sums), LARGEST)).astype(np.int64)
    return tree_of(recording, values)
