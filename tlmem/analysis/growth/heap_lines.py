"""Lines whose native memory or Python objects grew, estimated from sampled blocks of the heap.

Covers: what each line allocated since the growth began and still has, with its interval. Does not
cover: whether memory grows at all; the samples of resident memory say that (``process_growth``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.growth.process_growth import Rise
from tlmem.analysis.model import CONFIDENCE, Finding, Verdict
from tlmem.analysis.places import Places, allocated_at
from tlmem.units import format_bytes, format_count

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

Numbers = NDArray[np.float64]
KINDS = {"native": "native", "python": "python", "small": "python", "large": "python"}
"""Of the curves that rise, whose memory is sampled; by the outcome that names it."""
LEAST_SHARE = 0.05
"""Of the rise; a line that surely has less is not named."""
MOST_LINES = 5


@dataclass(frozen=True)
class Estimate:
    """So many bytes, with the ends of their 95 % interval, and so many blocks."""

    bytes: float
    low: float
    high: float
    count: float

    def __str__(self) -> str:
        return f"{format_bytes(self.bytes)} ({format_bytes(self.low)} to {format_bytes(self.high)})"


def estimate(size: Numbers, weight: Numbers) -> Estimate:
    """What all blocks have of which these are a sample.

    A block stands for ``weight`` blocks of its size; the sum is unbiased, whatever the sizes. Its
    interval is the one of Fay and Feuer for weighted sums of Poisson counts: exact where all
    blocks are small, and as narrow as it must be where most are large and none is missed.

    Source: Fay and Feuer, "Confidence intervals for directly standardized rates", 1997.
    """
    from scipy.stats import chi2

    whole = float((size * weight).sum())
    variance = float((size**2 * weight * (weight - 1)).sum())
    if variance <= 0:
        return Estimate(whole, whole, whole, float(weight.sum()))
    tail, one_more = (1 - CONFIDENCE) / 2, float((size * (weight - 1)).max())
    low = variance / (2 * whole) * chi2.ppf(tail, 2 * whole**2 / variance)
    whole_more, variance_more = whole + one_more, variance + one_more**2
    high = variance_more / (2 * whole_more)
    high *= chi2.ppf(1 - tail, 2 * whole_more**2 / variance_more)
    return Estimate(whole, float(low), float(high), float(weight.sum()))


def heap_lines(
    recording: Recording, places: Places, rises: Sequence[Rise], judged_ns: int
) -> list[Finding]:
    """A finding for each line that has a good part of a rise, most bytes first for each kind."""
    found: dict[str, list[Finding]] = {}
    for rise in rises:
        kind = KINDS.get(rise.kind)
        if kind is not None and kind not in found and len(recording.heap):
            found[kind] = list(lines_of(recording, places, rise, kind, judged_ns))
    return [finding for findings in found.values() for finding in findings]


def lines_of(
    recording: Recording, places: Places, rise: Rise, kind: str, judged_ns: int
) -> Iterator[Finding]:
    """Of one rise."""
    heap = recording.heap
    died, born = heap["died_ns"].to_numpy(), heap["born_ns"].to_numpy()
    there = (born >= rise.since_ns) & (born <= judged_ns) & ((died < 0) | (died > judged_ns))
    there &= heap["is_python"].to_numpy() == (kind == "python")
    rows = np.flatnonzero(there)
    site = heap["born_site"].to_numpy(np.int64)[rows]
    size = heap["size_bytes"].to_numpy(np.float64)[rows]
    weight = heap["weight"].to_numpy()[rows]
    # A damaged event may name a site that the recording does not have.
    group = places.group_of_site[np.where(site < len(places.group_of_site), site, 0)]
    held = np.bincount(group, size * weight, minlength=places.count)
    for line in np.argsort(-held, kind="stable")[:MOST_LINES]:
        mine = np.flatnonzero(group == line)
        if not len(mine):
            return
        about = estimate(size[mine], weight[mine])
        if about.low < LEAST_SHARE * rise.bytes:
            continue
        most = np.bincount(site[mine], size[mine] * weight[mine]).argmax()
        frame = places.frames[line]
        what = "native memory" if kind == "native" else "memory of Python objects"
        yield Finding(
            kind=f"{kind}-site",
            severity="info",
            count=round(about.count),
            bytes=round(about.bytes),
            evidence=(
                f"About {about} of {what} allocated {allocated_at(frame)} since the growth began "
                f"is still there, in about {format_count(round(about.count))} blocks; "
                f"{format_count(len(mine))} of them were recorded."
            ),
            site=frame,
            stack=places.stack(int(most)),
            grew_from_ns=rise.since_ns,
            grew_until_ns=judged_ns,
        )


def with_line_named(verdict: Verdict, found: Sequence[Finding]) -> Verdict:
    """The verdict on native memory or Python's heap, with the line that has most of it."""
    lines = [finding for finding in found if finding.kind == f"{verdict.outcome}-site"]
    if not lines or lines[0].site is None:
        return verdict
    first = lines[0]
    assert first.site is not None
    named = f"About {format_bytes(first.bytes)} was allocated {allocated_at(first.site)}."
    return replace(verdict, sentence=f"{verdict.sentence} {named}")
