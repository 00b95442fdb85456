"""Lines that grew for a good part of the run, stopped, and were kept to its end.

What a training phase collects in a dict and an evaluation of minutes drags along grows no more when
the program is judged; it is memory that was never given back all the same. A line grew when its
survivors were born evenly over a good part of the run, each of them in addition to those before,
and other objects came and went meanwhile. Two healthy shapes look alike:

* a *load* is at the begin of the run, before the work, and makes little beside what it keeps; it is
  not reported at all;
* a *cache* that is full by now: the work that filled it goes on as before. It is told, not warned
  of.

Covers: tracked objects by blamed line. Does not cover: what grows to the end, see
``growing_sites``; caches that became full near it, see ``leaks.filling_caches``. See also:
docs/findings.md, for every threshold and its reason.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.growth.growing_sites import GENERATIONS, GrowingSite
from tlmem.analysis.growth.robust import unevenness
from tlmem.analysis.lifetimes import Lifetimes, alive_at
from tlmem.analysis.model import Finding
from tlmem.analysis.places import Places, place
from tlmem.analysis.rules import RULES
from tlmem.units import format_bytes, format_count, format_seconds

PERIOD = 0.2
"""Share of the run over which survivors must come; what is loaded or built once takes less."""
BEGIN = 0.02
"""Share of the run, and of what comes and goes, up to which a period lies at the begin."""
WORK, SURE_WORK = 1.0, 5.0
"""Bytes that came and went for each byte that was kept, and from where on nobody would take it for
a load, which makes some to convert what it read; of periods at the begin the latter is asked for a
warning."""
AT_PACE = 0.2
"""Where most of the work of the period, by objects, went on after it at so much of its pace or
faster, what was filled is a cache."""
FEW = 0.05
"""Share of the survivors at each end that may be apart: a buffer before, a result after."""
LARGE_BYTES = 10_000_000
"""Bytes from which a past growth is a warning, where it is a good part of all that is alive."""

Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PastGrowth:
    """A line that grew from ``first_ns`` to ``last_ns`` and was kept until the program was judged.

    ``survivors`` of together ``bytes``, most of them made at ``site``; ``example`` is the number of
    one of the oldest. ``full`` says that the same work went on: a cache that is full. ``severity``
    is ``warning`` where it is none and a good part of all that is alive, else ``info``.
    """

    group: int
    survivors: int
    bytes: int
    first_ns: int
    last_ns: int
    site: int
    example: int
    full: bool
    severity: str


def past_findings(
    lives: Lifetimes, places: Places, growing: Collection[int], full: Sequence[GrowingSite]
) -> list[Finding]:
    """One finding for each line that grew and grows no more, most bytes first.

    Args:
        growing: lines that are not asked.
        full: growth of some of these that has ended nevertheless, see ``leaks.filling_caches``.
    """
    alive = np.flatnonzero((lives.born <= lives.judged_ns) & (lives.died > lives.judged_ns))
    weight = lives.weight[alive]
    held = lives.size[alive] * weight
    counts = np.bincount(lives.group[alive], weights=weight, minlength=places.count)
    sums = np.bincount(lives.group[alive], weights=held, minlength=places.count)
    candidates = (counts >= RULES.few_survivors) & (sums >= RULES.least_bytes_of_values)
    candidates[list(growing)] = False
    found = [as_past(lives, growth) for growth in full]
    for group in np.flatnonzero(candidates).tolist():
        rows = alive[lives.group[alive] == group]
        growth = judge_past(lives, places.count, group, rows, float(sums.sum()))
        found += [growth] if growth is not None else []
    found.sort(key=lambda growth: (-growth.bytes, growth.group))
    return [finding_of(lives, places, growth) for growth in found]


def as_past(lives: Lifetimes, growth: GrowingSite) -> PastGrowth:
    """What became full, told as what grew in the past."""
    last = growth.rows[-1] if growth.rows is not None else -1
    return PastGrowth(
        group=growth.group,
        survivors=growth.survivors,
        bytes=growth.bytes,
        first_ns=growth.first_ns,
        last_ns=int(lives.born[last]),
        site=growth.site,
        example=growth.example,
        full=True,
        severity="info",
    )


def finding_of(lives: Lifetimes, places: Places, growth: PastGrowth) -> Finding:
    """What is said of one."""
    frame = places.frames[growth.group]
    first, last = (
        format_seconds(max(0, time_ns - lives.begin_ns) / 1e9)
        for time_ns in (growth.first_ns, growth.last_ns)
    )
    return Finding(
        kind="grew-and-kept",
        severity=growth.severity,
        count=growth.survivors,
        bytes=growth.bytes,
        evidence=(
            f"{format_bytes(growth.bytes)} in {format_count(growth.survivors)} "
            f"{lives.noun(growth.group)}s allocated at {place(frame)} between {first} and {last} "
            "were kept until the end; nothing was added since"
            f"{', though the same work went on: a cache that is full' if growth.full else ''}."
        ),
        object=growth.example,
        site=frame,
        stack=places.stack(growth.site),
        grew_from_ns=growth.first_ns,
        grew_until_ns=growth.last_ns,
    )


def judge_past(
    lives: Lifetimes, groups: int, group: int, alive: Rows, all_bytes: float
) -> PastGrowth | None:
    """Whether one line grew and stopped; ``alive`` are its survivors in order of birth."""
    rows = period_of(lives, alive)
    first_ns, last_ns = int(lives.born[rows[0]]), int(lives.born[rows[-1]])
    begin_ns, run_ns = lives.work_begin_ns, max(1, lives.judged_ns - lives.work_begin_ns)
    weight = lives.weight[rows]
    held = int((lives.size[rows] * weight).sum())
    if last_ns - begin_ns > RULES.reach * run_ns or held < RULES.least_bytes_of_values:
        return None
    if span(lives, rows) < PERIOD or not comes_evenly(lives, rows):
        return None
    if gained(lives, group, first_ns, last_ns) < RULES.nearly_all * held:
        return None
    work = Work.of(lives, groups, group, first_ns, last_ns)
    if work.bytes < WORK * held or work.after < RULES.few_survivors:
        return None
    at_begin = min((first_ns - begin_ns) / run_ns, work.before) < BEGIN
    if at_begin and span(lives, rows) < RULES.span:
        return None
    full = work.goes_on >= RULES.majority
    sure = not full and (not at_begin or work.bytes >= SURE_WORK * held)
    large = held >= max(LARGE_BYTES, RULES.large_share * all_bytes)
    sites, times = np.unique(lives.site[rows], return_counts=True)
    return PastGrowth(
        group=group,
        survivors=int(weight.sum()),
        bytes=held,
        first_ns=first_ns,
        last_ns=last_ns,
        site=int(sites[np.argmax(times)]),
        example=int(lives.ordinal[rows[0]]),
        full=full,
        severity="warning" if sure and large else "info",
    )


def period_of(lives: Lifetimes, alive: Rows) -> Rows:
    """The survivors without a few at either end that are apart from the others."""
    few = int(FEW * len(alive))
    born = lives.born[alive]
    first, last = born[few], born[len(born) - 1 - few]
    part = (last - first) / GENERATIONS
    return alive[(born >= first - part) & (born <= last + part)]


def span(lives: Lifetimes, rows: Rows) -> float:
    """The share of the run between the first and the last; with pauses or without, what is less."""
    born, clock = lives.born, lives.clocks[0]
    end = max(0, int(np.searchsorted(born, lives.judged_ns, "right")) - 1)
    wall = (born[rows[-1]] - born[rows[0]]) / max(1, lives.judged_ns - lives.work_begin_ns)
    own = (clock[rows[-1]] - clock[rows[0]]) / max(1.0, clock[end] - clock[0])
    return float(min(wall, own))


def comes_evenly(lives: Lifetimes, rows: Rows) -> bool:
    """Whether each part of the period contributes, on the clock of time or of allocations."""
    size = lives.size[rows]
    if size.max() > RULES.large_share * size.sum():
        return False
    kept = np.arange(1, len(rows) + 1) / len(rows)
    uneven = RULES.unevenness + RULES.chance / np.sqrt(len(rows))
    for clock in (
        lives.born[rows].astype(np.float64),
        lives.clocks[0, rows],
        lives.clocks[1, rows],
    ):
        if clock[-1] <= clock[0]:
            continue
        x = (clock - clock[0]) / (clock[-1] - clock[0])
        parts = np.bincount(
            np.minimum((x * GENERATIONS).astype(int), GENERATIONS - 1), minlength=GENERATIONS
        )
        if np.all(parts >= RULES.fair_part * parts.mean()) and unevenness(x, kept) <= uneven:
            return True
    return False


def gained(lives: Lifetimes, group: int, first_ns: int, last_ns: int) -> int:
    """Bytes by which a line's live memory rose in the period.

    In a queue or a ring that is emptied as it is filled the last ones survive, and nothing grew.
    """
    line = np.flatnonzero(lives.group == group)
    born, died = lives.born[line], lives.died[line]
    held = lives.size[line] * lives.weight[line]

    before, after = alive_at(np.array([first_ns - 1, last_ns]), born, died, held)
    return int(after - before)


@dataclass(frozen=True)
class Work:
    """What came and went while a line grew, made there or elsewhere.

    ``bytes`` is how much that was; ``before`` is the share of all such objects that were made
    earlier, ``after`` how many were later; ``goes_on`` is the share of those of the period whose
    lines went on afterwards.
    """

    bytes: int
    before: float
    after: int
    goes_on: float

    @classmethod
    def of(cls, lives: Lifetimes, groups: int, group: int, first_ns: int, last_ns: int) -> Work:
        """Counts it; objects that a size limit folded are not known."""
        born = lives.born
        first, last, end = np.searchsorted(born, [first_ns, last_ns, lives.judged_ns], "right")
        others = lives.died <= lives.judged_ns
        inside = np.arange(first, last)
        inside = inside[others[inside]]
        during = np.bincount(lives.group[inside], minlength=groups)
        later = np.arange(last, end)
        later = np.bincount(lives.group[later[others[later]]], minlength=groups)
        pace = during / max(1, last_ns - first_ns)
        paces = later / max(1, lives.judged_ns - last_ns)
        going = during[(during > 0) & (paces >= AT_PACE * pace)].sum()
        total = int(np.count_nonzero(others[:end]))
        return cls(
            bytes=int(lives.size[inside].sum()),
            before=int(np.count_nonzero(others[:first])) / max(1, total),
            after=int(later.sum()),
            goes_on=float(going / max(1, len(inside))),
        )
