"""Which types of Python objects became more, from the counts that snapshots have.

A snapshot tells of how many objects of each type Python's collector follows: containers, instances,
functions, frames. It does not follow what cannot refer to other objects (``str``, ``bytes``,
numbers), nor a dict or tuple that has nothing but such.

Covers: first differences between snapshots, in words, beside growth of Python's heap.
Does not cover: whether that grows (``growth``), who holds the objects (``containers``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tlmem.analysis.model import Finding, MoreObjects, Verdict
from tlmem.units import format_count, format_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

FEWEST_MORE = 100
"""Objects that a type must have gained: fewer are modules that are imported, or a cache."""
LEAST_OF_LARGEST = 0.05
"""Of what the type gained that gained most; a type with less is not named."""
LEAST_OF_ALL = 0.1
"""Of its objects that the type must have gained: a module imported late brings a few functions."""
MOST_TYPES = 4
UNWINDING = 0.1
"""Share of the gain by which the last count may be lower than the one before, and still counts."""
LATEST = 0.5
"""Share of the time of growth that the counts must span to say that no type became more."""
GROWTH, LINE = "python-growth", "python-site"
UNFOLLOWED = (
    "No type of object that Python's collector follows became more: what grew are strings, bytes, "
    "numbers, or containers of nothing else."
)


def growing_types(
    recording: Recording, begin_ns: int, until_ns: int, origin_ns: int
) -> tuple[MoreObjects, ...] | None:
    """What became more from a moment of the run on, most first; None where counts do not span it.

    The last count before that moment is where it is counted from. A type that a count leaves out
    had at most as many objects as the rarest that it names, and that is what is assumed.

    Args:
        begin_ns, until_ns: when memory grew.
        origin_ns: when the program began; times in the answer count from there.
    """
    table = recording.object_types
    if not len(table):
        return None
    counts = table.pivot_table(index="time_ns", columns="type", values="count", aggfunc="sum")
    rarest = table.groupby("time_ns")["rarest"].max()
    times = counts.index.to_numpy(np.int64)
    first = max(0, int(np.searchsorted(times, begin_ns, side="right")) - 1)
    counts, rarest, times = counts.iloc[first:], rarest.iloc[first:], times[first:]
    if len(counts) < 2 or times[-1] - max(begin_ns, times[0]) < LATEST * (until_ns - begin_ns):
        return None
    before = counts.iloc[0].fillna(float(rarest.iloc[0]))
    found = []
    for name in counts.columns:
        levels = [float(before[name]), *counts[name].iloc[1:].fillna(0.0).tolist()]
        if len(levels) > 2 and levels[-1] < levels[-2] - UNWINDING * (levels[-2] - levels[0]):
            levels.pop()
        least = max(FEWEST_MORE, LEAST_OF_ALL * levels[-1])
        if levels[-1] - levels[0] >= least and _keeps_rising(levels):
            found.append((str(name), round(levels[-1] - levels[0]), round(levels[-1])))
    found.sort(key=lambda each: (-each[1], each[0]))
    since_s = (int(times[0]) - origin_ns) / 1e9
    return tuple(
        MoreObjects(name, more, count, since_s)
        for name, more, count in found[:MOST_TYPES]
        if more >= LEAST_OF_LARGEST * found[0][1]
    )


def _keeps_rising(levels: Sequence[float]) -> bool:
    """Whether no count is lower than one before it, but for what the collector has yet to take."""
    highest = np.maximum.accumulate(levels)
    return bool(np.all(highest - levels <= UNWINDING * (levels[-1] - levels[0])))


def with_types(findings: Sequence[Finding], recording: Recording, origin_ns: int) -> list[Finding]:
    """The findings, growth of Python's heap and its first line with the types that became more."""
    found = []
    is_first = True
    for finding in findings:
        is_line = finding.kind == LINE and is_first
        is_first = is_first and not is_line
        if finding.kind != GROWTH and not is_line:
            found.append(finding)
            continue
        begin_ns, until_ns = finding.grew_from_ns or 0, finding.grew_until_ns or 0
        types = growing_types(recording, begin_ns, until_ns, origin_ns)
        if types is None:
            found.append(finding)
            continue
        evidence = f"{finding.evidence} {sentence(types)}"
        found.append(replace(finding, evidence=evidence, types=types))
    return found


def sentence(types: Sequence[MoreObjects]) -> str:
    """What became more, in words."""
    if not types:
        return UNFOLLOWED
    names = ", ".join(f"{each.short_name} +{format_count(each.more)}" for each in types)
    return f"Objects that became more since {format_seconds(types[0].since_s)}: {names}."


def with_types_named(verdict: Verdict, findings: Sequence[Finding]) -> Verdict:
    """The verdict on Python's heap, with the types that became more."""
    if verdict.outcome != "python":
        return verdict
    for finding in findings:
        if finding.kind == GROWTH and finding.types:
            return replace(verdict, sentence=f"{verdict.sentence} {sentence(finding.types)}")
    return verdict
