"""Growth within the last stage of a program that works in stages.

A program that reads, transforms and then computes keeps in each stage what the next one needs, or
what a function makes until it returns. The last stage rises like a leak up to the program's end. A
*stage* is a line that had stopped when the growing one began: it kept at least half as many objects
and half as many bytes, over at least half as long a time, of the program's own. If two stages freed
what they kept, the last one is expected to. A leak does not stop: once it has lasted twice as long
as each stage before it, they explain nothing. Call paths of one line have a rule of their own,
``was_given_back``. A line that was steady and has just begun to grow may be in its last stage, too.

Covers: tracked objects, by line and by call path. Does not cover: a program's first stage; what a
library's call makes, see ``leaks.one_call``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.lifetimes import Lifetimes, alive_at
from tlmem.analysis.model import Finding
from tlmem.analysis.places import Places, allocated_at, place
from tlmem.analysis.rules import RULES
from tlmem.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from tlmem.analysis.growth.growing_sites import GrowingSite

FEW = 0.05
"""Share of what a stage kept that may be apart at either end."""

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class LastStage:
    """A line that grows to the end, and the lines that were stages before it, latest first.

    ``given_back`` are those of them of which nearly nothing is left, one line for each stage. There
    are none of a line that was steady, and grows since too short a time to be judged.
    """

    growth: GrowingSite
    stages: tuple[int, ...]
    given_back: tuple[int, ...]

    @property
    def is_habit(self) -> bool:
        """Whether stage after stage gave back what it kept: the last will, too."""
        return len(self.given_back) > 1

    def finding(self, lives: Lifetimes, places: Places) -> Finding:
        """What is said of it."""
        growth = self.growth
        since = format_seconds(max(0, growth.first_ns - lives.begin_ns) / 1e9)
        stages = self.given_back or self.stages
        before = " and ".join(place(places.frames[group]) for group in stages[:2])
        then = "gave it back" if self.given_back else "stopped"
        history = (
            f"Before that, {before} kept as much for as long, and {then}."
            if stages
            else "Before that they were freed: a leak that has just begun, or late results."
        )
        return growth.info(
            "last-stage",
            places,
            f"{format_count(growth.survivors)} {lives.noun(growth.group)}s "
            f"({format_bytes(growth.bytes)}) allocated {allocated_at(places.frames[growth.group])} "
            f"were kept since {since}. {history}",
        )


def last_stages(lives: Lifetimes, growths: list[GrowingSite]) -> list[LastStage]:
    """Those of the growing lines before which there were stages."""
    found = (stages_before(lives, growth) for growth in growths)
    return [each for each in found if each is not None]


def stages_before(lives: Lifetimes, growth: GrowingSite) -> LastStage | None:
    """The stages before this growth; None where what was freed is lost."""
    if lives.lost_ns or growth.survivors < RULES.few_survivors:
        return None
    earlier, until = np.searchsorted(lives.born, [growth.first_ns, growth.judged_ns + 1]).tolist()
    lasted = growth.judged_ns - growth.first_ns
    group, born, died = lives.group[:earlier], lives.born[:earlier], lives.died[:earlier]
    passing = np.minimum(died, growth.judged_ns) - born < (1 - RULES.nearly_all) * lasted
    rows = np.flatnonzero(~passing & (group != growth.group))
    size, weight = lives.size[rows], lives.weight[rows]
    count, held, back = (
        np.bincount(group[rows], weights=each)
        for each in (weight, weight * size, weight * (died[rows] <= growth.judged_ns))
    )
    later = np.bincount(lives.group[earlier:until], minlength=len(count))[: len(count)]
    candidates = np.flatnonzero(
        (count >= RULES.majority * growth.survivors)
        & (held >= RULES.majority * growth.bytes)
        & (later <= (1 - RULES.nearly_all) * count)
    )
    time = lives.clocks[0]
    took = time[until - 1] - time[earlier]
    periods: dict[int, tuple[int, int]] = {}
    for candidate in candidates.tolist():
        births = rows[group[rows] == candidate]
        few = int(FEW * len(births))
        first, last = int(births[few]), int(births[-1 - few])
        if time[last] - time[first] >= RULES.majority * took:
            periods[candidate] = int(born[first]), int(born[last])
    if not periods:
        return None
    stages = sorted(periods, key=lambda stage: -periods[stage][1])
    given_back: list[int] = []
    for stage in stages:
        is_apart = not given_back or periods[stage][1] <= periods[given_back[-1]][0]
        if is_apart and back[stage] >= RULES.nearly_all * count[stage]:
            given_back.append(stage)
    return LastStage(growth, tuple(stages), tuple(given_back))


def was_given_back(lives: Lifetimes, others: Rows, growth: GrowingSite) -> bool:
    """Whether other paths of the line held much, too, before this one grew, and gave it back."""
    before = others[lives.born[others] < growth.first_ns]
    if len(before) < RULES.few_survivors:
        return False
    born, died, weight = lives.born[before], lives.died[before], lives.weight[before]
    most = int(alive_at(born, born, died, weight).max())
    left = int(weight[died > growth.first_ns].sum())
    some = 1 - RULES.nearly_all
    return most >= some * growth.survivors and left <= some * most
