"""Which Python container holds ever more, as snapshots saw it: evidence of growth outside arrays.

A snapshot tells how many items the largest containers of the program have, and who holds arrays
over memory that NumPy did not allocate (buffers of other libraries, bytes, what was unpickled).
A container grows when each snapshot saw at least as many of them as the one before.

Covers: the container that grew most, in words, beside growth of native memory or of Python's heap.
Does not cover: whether memory grows (``growth``), who holds arrays that are tracked
(``python_holders``). What is not among the largest containers is not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tlmem.analysis.holders.runtime_holders import together
from tlmem.analysis.holders.snapshots import PYTHON
from tlmem.analysis.model import Finding, Holder, Verdict
from tlmem.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

FEWEST_SEEN = 3
"""Snapshots that must have seen a container: two of them show a difference, and no growth."""
FEWEST_MORE = 10
"""Items that it must have gained: fewer are a configuration that is read, not a habit."""
LEAST_BYTES = 100_000
"""Bytes that arrays over other memory must have gained, as ``FEWEST_MORE`` arrays of a line."""
LATEST = 0.5
"""Share of the run at which it must have been seen last: what went before then was let go of."""
LARGE_PART = 0.5
"""Share of a rise that arrays over other memory must have, in bytes, to be named for it."""
KINDS = ("native-growth", "shared-growth", "python-growth")
"""Findings about memory that a container may keep."""


@dataclass(frozen=True)
class Content:
    """A container that grew from one snapshot to another by ``more`` items, or arrays of ``bytes``.

    ``count`` is how many there were at last, ``words`` names it as the last snapshot saw it.
    """

    of_arrays: bool
    words: str
    chain: str
    count: int
    more: int
    bytes: int
    held_bytes: int
    begin_ns: int
    end_ns: int

    @property
    def holder(self) -> Holder:
        """The container as a holder."""
        return Holder(
            kind=PYTHON,
            name=self.words,
            count=self.count,
            chain=self.chain,
            seen_ns=self.end_ns,
            held_bytes=self.held_bytes if self.of_arrays else None,
        )

    @property
    def sentence(self) -> str:
        """By how much it grew."""
        seconds = format_seconds((self.end_ns - self.begin_ns) / 1e9)
        if not self.of_arrays:
            return (
                f"The Python container that grew most is {self.words}: by "
                f"{format_count(self.more)} items in {seconds}."
            )
        return (
            f"Arrays whose memory NumPy did not allocate are held by {self.words}, ever more of "
            f"them: {format_count(self.more)} and {format_bytes(self.bytes)} in {seconds}."
        )


def growing_contents(recording: Recording, begin_ns: int, judged_ns: int) -> list[Content]:
    """What grew from a moment of the run on, most bytes first, then most items.

    The last snapshot before that moment is where growth is counted from.
    """
    table = recording.contents
    if not len(table):
        return []
    found = []
    for (_, what), rows in table.groupby(["name", "what"], sort=True):
        # Of several of one name in a snapshot, the largest.
        rows = rows.sort_values(["time_ns", "count"]).groupby("time_ns").tail(1)
        times = rows["time_ns"].to_numpy(np.int64)
        first = max(0, int(np.searchsorted(times, begin_ns, side="right")) - 1)
        rows, times = rows.iloc[first:], times[first:]
        counts = rows["count"].to_numpy(np.int64)
        held = rows["held_bytes"].to_numpy(np.int64)
        if len(rows) < FEWEST_SEEN or (np.diff(counts) < 0).any():
            continue
        more, gained = int(counts[-1] - counts[0]), int(held[-1] - held[0])
        of_arrays = what == "arrays"
        if more < FEWEST_MORE or times[-1] < LATEST * judged_ns:
            continue
        if of_arrays and gained < LEAST_BYTES:
            continue
        found.append(
            Content(
                of_arrays=of_arrays,
                words=str(rows["words"].iloc[-1]),
                chain=str(rows["chain"].iloc[-1]),
                count=int(counts[-1]),
                more=more,
                bytes=gained,
                held_bytes=int(held[-1]),
                begin_ns=int(times[0]),
                end_ns=int(times[-1]),
            )
        )
    return sorted(found, key=lambda content: (-content.bytes, -content.more, content.words))


def contents_beside(
    findings: Sequence[Finding], recording: Recording, judged_ns: int
) -> dict[str, Content]:
    """Of each finding about memory outside arrays, by its kind, what grew most meanwhile."""
    found = {}
    for finding in findings:
        if finding.kind not in KINDS:
            continue
        contents = growing_contents(recording, finding.grew_from_ns or 0, judged_ns)
        of_arrays = [c for c in contents if c.of_arrays and c.bytes >= LARGE_PART * finding.bytes]
        of_items = [c for c in contents if not c.of_arrays]
        for content in [*of_arrays, *of_items][:1]:
            found[finding.kind] = content
    return found


def with_contents(
    findings: Sequence[Finding],
    beside: Mapping[str, Content],
    recording: Recording,
    begin_ns: int,
    judged_ns: int,
) -> list[Finding]:
    """The findings, growth outside arrays with what grew ``beside`` it.

    Where arrays over memory that is not NumPy's grow and no such finding names who holds them, one
    more finding does.
    """
    found = []
    for finding in findings:
        content = beside.get(finding.kind)
        if content is None:
            found.append(finding)
            continue
        evidence = f"{finding.evidence} {content.sentence}"
        holders = together(finding.holders, (content.holder,))
        found.append(replace(finding, evidence=evidence, holders=holders))
    named = {content.words for content in beside.values()}
    contents = growing_contents(recording, begin_ns, judged_ns)
    others = [c for c in contents if c.of_arrays and c.words not in named]
    return [*found, *map(untracked_finding, others[:1])]


def untracked_finding(content: Content) -> Finding:
    """What is said of such arrays where their memory is not known to grow otherwise."""
    return Finding(
        kind="untracked-arrays",
        severity="info",
        count=content.more,
        bytes=content.bytes,
        evidence=content.sentence,
        holders=(content.holder,),
        grew_from_ns=content.begin_ns,
        grew_until_ns=content.end_ns,
    )


def with_holder_named(
    verdict: Verdict, beside: Mapping[str, Content], findings: Sequence[Finding]
) -> Verdict:
    """The verdict, with who keeps what, where no line says it.

    Of other memory that is the container that grew ``beside`` it, of code cells the first holder.
    """
    content = beside.get(f"{verdict.outcome}-growth")
    if verdict.outcome == "native":
        content = content or beside.get("shared-growth")
    if content is not None:
        return replace(verdict, sentence=f"{verdict.sentence} {content.sentence}")
    worst = next((finding for finding in findings if finding.kind == "growing-site"), None)
    if worst is None or worst.site is None or not worst.site.cells or not worst.holders:
        return verdict
    held_by = f"Held by {worst.holders[0].name}."
    return replace(verdict, sentence=f"{verdict.sentence} {held_by}")
