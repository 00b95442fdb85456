"""Lines whose native memory or Python objects grew, estimated from sampled blocks of the heap.

Covers: what each line allocated since the growth began and still has, with its interval. Does not
cover: whether memory grows at all; the samples of resident memory say that (``process_growth``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from tlmem.analysis.growth.process_growth import Rise
from tlmem.analysis.heap_samples import MEMORIES, blocks_of
from tlmem.analysis.model import Finding, Verdict
from tlmem.analysis.places import Places, allocated_at
from tlmem.units import format_bytes, format_count

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

KINDS = {"native": "native", "python": "python", "small": "python", "large": "python"}
"""Of the curves that rise, whose memory is sampled; by the outcome that names it."""
LEAST_SHARE = 0.05
"""Of the rise; a line that surely has less is not named."""
MOST_LINES = 5


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
    blocks = blocks_of(recording, places, kind, judged_ns, rise.since_ns)
    for line, mine in islice(blocks.by_line(), MOST_LINES):
        about = blocks.about(mine)
        if about.low < LEAST_SHARE * rise.bytes:
            continue
        frame = places.frames[line]
        what = MEMORIES[kind]
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
            stack=places.stack(blocks.main_site(mine)),
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
