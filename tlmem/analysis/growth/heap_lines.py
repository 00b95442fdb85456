"""Lines whose native memory or Python objects grew, estimated from sampled blocks of the heap.

Sampled blocks have births and deaths like arrays, and are judged by the same questions
(``growing_sites``). What they show is used three ways:

* *lines* of a rise: what each line allocated since the growth began and still has;
* *kinds*: memory that rises as native but was allocated as Python's is Python's;
* *rises* that the curves of the process hide: many samples of one line, evenly through the run,
  where resident memory rose as much too.

Covers: estimates with their intervals. Does not cover: whether the memory of the process grows;
samples of resident memory say that (``process_growth``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tlmem.analysis.growth.curves import Curve, Window, large_objects, memory_curve
from tlmem.analysis.growth.growing_sites import GrowingSite, growing_lines, is_early
from tlmem.analysis.growth.late_rise import Unsettled
from tlmem.analysis.growth.process_growth import Resident, Rise
from tlmem.analysis.heap_samples import MEMORIES, Blocks, Rows, blocks_of
from tlmem.analysis.lifetimes import NEVER, Lifetimes, clocks
from tlmem.analysis.model import Estimate, Finding, Rate, Verdict
from tlmem.analysis.places import Places, allocated_at
from tlmem.analysis.rules import RULES
from tlmem.units import format_bytes, format_count

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

LEAST_SHARE = 0.05
"""Of the rise; a line that surely has less is not named."""
MOST_LINES = 5
ALLOCATOR_SHARE = 24 / 512
"""What the C allocator adds to a block of Python at most, as a share of the smallest it gives."""
FEW_TIMES = 20
"""The rate: a growth of less has few samples; one of more without a line is spread over many."""
TIMES_FINER = 8
"""Than what was recorded is what a report asks for where samples were too few."""
EVENLY = "; it grows evenly to the end"
HOW_TO_SAMPLE = "Record again with tlmem record --heap: the verdict then names the line."


@dataclass(frozen=True)
class SampledGrowth:
    """A line that grows by its samples: ``line`` counts samples, ``about`` estimates all blocks.

    ``early`` says that the run was too short to tell that from a cache that is emptied later.
    """

    memory: str
    line: GrowingSite
    about: Estimate
    early: bool

    @property
    def rise(self) -> Rise:
        """The growth as one of the process's memory."""
        seconds = max(1e-3, (self.line.judged_ns - self.line.first_ns) / 1e9)
        since, held = self.line.first_ns, round(self.about.bytes)
        return Rise(self.memory, held, seconds, since, rate_over(self.about, seconds), sampled=True)


def rate_over(about: Estimate, seconds: float) -> Rate:
    """How fast it came in so many seconds."""
    seconds = max(1e-3, seconds)
    return Rate(about.bytes / seconds, about.low / seconds, about.high / seconds)


def sampled_growths(
    recording: Recording, places: Places, lives: Lifetimes
) -> tuple[SampledGrowth, ...]:
    """Lines of native memory and of Python's heap that grow by their samples.

    They are asked what lines of arrays are asked. None where of some only survivors are known.
    """
    if not len(recording.heap) or recording.heap_from_ns > 0:
        return ()
    found = []
    for memory in MEMORIES:
        blocks, sampled = sampled_lives(recording, places, lives, memory)
        for growth in growing_lines(sampled, places) if len(sampled) else ():
            if growth.rows is not None:
                about = blocks.about(sampled.ordinal[growth.rows])
                early = is_early(growth, sampled)
                found.append(SampledGrowth(memory, growth, about, early))
    return tuple(sorted(found, key=lambda growth: -growth.about.bytes))


def sampled_lives(
    recording: Recording, places: Places, lives: Lifetimes, memory: str
) -> tuple[Blocks, Lifetimes]:
    """Sampled blocks, and their births and deaths as those of objects.

    ``size`` is what all blocks have that a sample stands for; ``ordinal`` is its row in the blocks.
    """
    blocks = blocks_of(recording, places, memory, None)
    rows = blocks.of_program(places, lives.cut_ns)
    born, size = blocks.born[rows], blocks.stands_for(rows)
    return blocks, replace(
        lives,
        born=born,
        died=np.where(blocks.died[rows] < 0, NEVER, blocks.died[rows]),
        size=size,
        site=blocks.site[rows],
        died_site=np.zeros(len(rows), np.int64),
        group=blocks.line[rows].astype(np.int32),
        ordinal=rows,
        weight=np.ones(len(rows), np.int64),
        sums=None,
        clocks=clocks(lives.delays.left_out_of(born), np.arange(len(rows)), size),
        runtime=np.zeros(len(rows), bool),
        torch=np.zeros(len(rows), bool),
        folded=False,
        lost_ns=0,
        first_ns=None,
    )


def with_sampled(
    resident: Resident,
    recording: Recording,
    places: Places,
    lives: Lifetimes,
    samples: pd.DataFrame,
    growths: Sequence[SampledGrowth],
    late: Unsettled | None,
) -> Resident:
    """What the samples of memory say, with the kind and the rises that sampled blocks show.

    Args:
        samples: of the process's memory.
        growths: lines that grow by their samples.
        late: what still rose at the end; in a short run a line is believed only beside that.
    """
    rises: list[Rise] = []
    for rise in without_overhead(resident.rises, samples, lives):
        rise = settled(rise, recording, places, lives.judged_ns)
        if not rise.sampled or all(rise.kind != other.kind for other in resident.rises):
            rises.append(rise)
    for growth in growths:
        known = any(rise.kind in MEMORIES for rise in rises)
        unsettled = late is not None and late.kind == growth.memory
        if not known and (unsettled or not growth.early) and is_sure(growth, samples, lives):
            rise = growth.rise
            if unsettled and late is not None and late.bytes > growth.about.high:
                rise = of_all_lines(rise, recording, places, lives.judged_ns)
            rises.append(rise)
    return replace(resident, rises=tuple(sorted(rises, key=order)))


def of_all_lines(rise: Rise, recording: Recording, places: Places, judged_ns: int) -> Rise:
    """The rise with what all lines allocated since it began and still have.

    A line that slows down does not grow evenly, but its memory still rises beside one that does.
    """
    blocks = blocks_of(recording, places, rise.kind, judged_ns, rise.since_ns)
    about = blocks.about(np.arange(len(blocks)))
    return replace(rise, bytes=round(about.bytes), rate=rate_over(about, rise.seconds))


def order(rise: Rise) -> tuple[bool, int]:
    """Tapes first, as their cause is known; then the largest rise."""
    return rise.kind != "tape", -rise.bytes


def settled(rise: Rise, recording: Recording, places: Places, judged_ns: int) -> Rise:
    """A rise, or that of Python's heap where native memory rose and samples say whose it was.

    The C allocator, which gives Python its larger blocks, is asked a moment before or after Python
    is. What native code cannot have kept, and Python surely did, was Python's.
    """
    if rise.kind != "native" or not len(recording.heap):
        return rise
    native, python = (
        blocks_of(recording, places, memory, judged_ns, rise.since_ns) for memory in MEMORIES
    )
    if not len(python):
        return rise
    about = python.about(np.arange(len(python)))
    kept = native.about(np.arange(len(native))).high if len(native) else 0.0
    if about.low < rise.bytes or kept >= RULES.majority * rise.bytes:
        return rise
    seconds = (judged_ns - rise.since_ns) / 1e9
    rate = rate_over(about, seconds)
    return Rise("python", round(about.bytes), seconds, rise.since_ns, rate, sampled=True)


def without_overhead(
    rises: Sequence[Rise], samples: pd.DataFrame, lives: Lifetimes
) -> Sequence[Rise]:
    """Rises without native memory that the C allocator adds to larger blocks of Python that rise.

    Those have more than 512 bytes each.
    """
    if not any(rise.kind == "python" for rise in rises):
        return rises
    window = Window(samples, lives.work_begin_ns, lives.judged_ns)
    large = large_objects(window)

    def is_overhead(rise: Rise) -> bool:
        before = large[window.time_ns <= rise.since_ns]
        grown = float(large[-1] - before[-1]) if len(before) else 0.0
        return rise.kind == "native" and rise.bytes <= ALLOCATOR_SHARE * grown

    return [rise for rise in rises if not is_overhead(rise)]


def is_sure(growth: SampledGrowth, samples: pd.DataFrame, lives: Lifetimes) -> bool:
    """Whether a line's samples alone are enough to say that the program leaks.

    They are many, and memory rose as well, by a good part of what they stand for: resident memory,
    or what the allocator says that it handed out, of which much may never have been touched.
    """
    line, about = growth.line, growth.about
    if line.survivors < RULES.late_survivors or about.low <= 0:
        return False
    window = Window(samples, lives.work_begin_ns, lives.judged_ns)
    least = RULES.majority * about.low
    return any(
        rise_since(memory_curve(window, name), line.first_ns) >= least
        for name in ("resident", growth.memory)
    )


def rise_since(curve: Curve, since_ns: int) -> float:
    """By how much a curve rose for good since a moment; 0 with few samples."""
    values = curve.values[curve.taken & (curve.time_ns >= since_ns)]
    if len(values) < RULES.fewest_survivors:
        return 0.0
    tenth = max(1, len(values) // 10)
    return float(values[-tenth:].min() - values[:tenth].min())


def heap_lines(
    recording: Recording,
    places: Places,
    rises: Sequence[Rise],
    judged_ns: int,
    growths: Sequence[SampledGrowth] = (),
) -> list[Finding]:
    """A finding for each line that has a good part of a rise, for each kind of memory.

    Lines that grow by their samples come first, then those that have most.
    """
    found: dict[str, list[Finding]] = {}
    for rise in rises if len(recording.heap) else ():
        if rise.kind in MEMORIES and rise.kind not in found:
            growing = [growth.line.group for growth in growths if growth.memory == rise.kind]
            found[rise.kind] = lines_of(recording, places, rise, judged_ns, growing)
    return [finding for findings in found.values() for finding in findings]


def lines_of(
    recording: Recording, places: Places, rise: Rise, judged_ns: int, growing: Sequence[int]
) -> list[Finding]:
    """Of one rise."""
    blocks = blocks_of(recording, places, rise.kind, judged_ns, rise.since_ns)
    lines: list[tuple[int, Rows, Estimate]] = []
    for line, mine in blocks.by_line():
        about = blocks.about(mine)
        if about.low >= LEAST_SHARE * rise.bytes:
            lines.append((line, mine, about))
        if len(lines) >= MOST_LINES:
            break
    lines.sort(key=lambda each: each[0] not in growing)
    seconds = (judged_ns - rise.since_ns) / 1e9
    return [
        line_finding(places, blocks, rise, judged_ns, mine, about, seconds, line in growing)
        for line, mine, about in lines
    ]


def line_finding(
    places: Places,
    blocks: Blocks,
    rise: Rise,
    judged_ns: int,
    mine: Rows,
    about: Estimate,
    seconds: float,
    grows: bool,
) -> Finding:
    """What one line has of a rise."""
    frame = places.frames[int(blocks.line[mine[0]])]
    rate = rate_over(about, seconds)
    return Finding(
        kind=f"{rise.kind}-site",
        severity="info",
        count=round(about.count),
        bytes=round(about.bytes),
        evidence=(
            f"About {about} of {MEMORIES[rise.kind]} allocated {allocated_at(frame)} since the "
            f"growth began is still there, about {rate.per_second()}, in about "
            f"{format_count(round(about.count))} blocks; {format_count(len(mine))} of them were "
            f"recorded{EVENLY if grows else ''}."
        ),
        site=frame,
        stack=places.stack(blocks.main_site(mine)),
        slope_bytes_per_s=rate.value,
        slope_low_bytes_per_s=rate.low,
        slope_high_bytes_per_s=rate.high,
        grew_from_ns=rise.since_ns,
        grew_until_ns=judged_ns,
    )


def with_line_named(verdict: Verdict, found: Sequence[Finding], heap_rate: float | None) -> Verdict:
    """The verdict on native memory or Python's heap, with the line that has most of it.

    Args:
        heap_rate: one block was sampled for so many bytes in the mean; 1: every block; None: none.
            Without samples, or with too few to name a line, the sentence says how to get them.
    """
    grows = [each for each in found if each.kind == f"{verdict.outcome}-growth"]
    if not grows:  # of the heap: shared memory is not sampled
        return verdict
    if verdict.outcome in MEMORIES and heap_rate is None:
        return replace(verdict, sentence=f"{verdict.sentence} {HOW_TO_SAMPLE}")
    lines = [finding for finding in found if finding.kind == f"{verdict.outcome}-site"]
    if not lines and verdict.outcome in MEMORIES and heap_rate is not None:
        finer = int(heap_rate / TIMES_FINER / 1000)
        if finer and sum(each.bytes for each in grows) < FEW_TIMES * heap_rate:
            few = f"No line has enough samples to be named; record with --heap={finer}kB."
            return replace(verdict, sentence=f"{verdict.sentence} {few}")
    if not lines or lines[0].site is None:
        return verdict
    first = lines[0]
    assert first.site is not None
    rate = Rate(
        first.slope_bytes_per_s or 0.0,
        first.slope_low_bytes_per_s or 0.0,
        first.slope_high_bytes_per_s or 0.0,
    )
    named = (
        f"About {format_bytes(first.bytes)} was allocated {allocated_at(first.site)}, about "
        f"{rate.per_second()}."
    )
    return replace(verdict, sentence=f"{verdict.sentence} {named}")
